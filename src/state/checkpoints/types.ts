import type { WhenLarge } from "../../platform/lib/large-answers.ts";
import type { BaseCheckpointSaver, CheckpointTuple } from "@langchain/langgraph-checkpoint";
import type { Database, Queryable } from "../../platform/database/database.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { ValueClasses } from "../values/classes.ts";

export interface CheckpointStorageOptions {
  database: Database;
  /** Bytes of elements and contents in this process's cache (default 64 MiB). */
  cacheBytes?: number;
  /** Characters of JSON of one value; default: the limit of a text. */
  valueCharactersAtMost?: number;
  logger: Logger;
}

/** One execution of a run: the owner of a lease. */
export interface AttemptOptions {
  threadId: string;
  runId: string;
  attempt: number;
  /**
   * As in LangGraph. With `sync`, `put` and `putWrites` resolve on commit. Otherwise they resolve on acceptance, and
   * the graph only waits for room if the queue would fill the memory; `flush()` waits for the commit. Default `async`.
   */
  durability?: "sync" | "async" | "exit";
  /** True: the thread has no checkpoints except for those of this attempt, so the first read is skipped. */
  threadIsEmpty?: boolean;
  /** Called after each `put` and `putWrites` that did not wait for the database. The graph awaits the promise. */
  beforeNextStep?: () => Promise<void> | undefined;
  /**
   * Called before each statement that stores state; the statement awaits the promise. A stored step is not executed
   * again after a crash, so its events must be stored first.
   */
  beforeWrite?: () => Promise<void> | undefined;
  /**
   * Metadata of every checkpoint of the attempt, below LangGraph's own. Omits reserved keys, values above 1,000
   * characters, and everything after 8,000.
   */
  metadata?: JsonObject;
  /** The keys of `metadata` that stay searchable with encryption: those that no config gave. */
  searchableMetadata?: readonly string[];
}

/**
 * Changes a checkpoint of the root graph before LangGraph gets it. `read` builds the same checkpoint from new objects
 * each time. See graphs/pending-writes.ts.
 */
export type TupleFilter = (
  tuple: CheckpointTuple,
  read: () => Promise<CheckpointTuple>,
) => Promise<CheckpointTuple>;

/** A checkpointer that revives values into given classes. */
export interface ClassedSaver {
  /**
   * The checkpointer for a graph whose copy of LangGraph has these classes; call it before the first read. An attempt's
   * checkpointer adopts the classes, a shared one returns another checkpointer.
   */
  withClasses(classes: ValueClasses): BaseCheckpointSaver;
}

/** The checkpointer of one attempt. */
export interface AttemptSaver extends BaseCheckpointSaver {
  /** Set it before the first read; without a filter every checkpoint is returned. */
  filter: TupleFilter | undefined;
  /**
   * True if the last call for the root graph was a `putWrites`, and no task of that step has failed or interrupted. If
   * the run fails now, a reducer may have refused the write.
   */
  readonly endsWithWrites: boolean;
  /** The id of a new checkpoint: LangGraph's id, or a later one if a newer checkpoint exists. */
  idAfterAll(threadId: string, id: string): string;
  /**
   * Resolves when everything is committed. Rejects with a `LeaseLostError` if the attempt is no longer current, or with
   * the database's error; afterwards the saver refuses every call.
   */
  flush(): Promise<void>;
  /**
   * The last checkpoint committed without waiting for the disk; undefined if there is none. A crash of the database may
   * lose the checkpoint until a later commit waits for the disk.
   */
  readonly lastUnsafe: { checkpointNs: string; checkpointId: string } | undefined;
  /** Aborts with the error as soon as the saver fails. */
  readonly failed: AbortSignal;
}

/** A checkpoint for the state API: ready to send, nothing revived. */
export interface StoredCheckpoint {
  threadId: string;
  checkpointNs: string;
  checkpointId: string;
  parentCheckpointId: string | null;
  /** The run that wrote it; null for a state update. */
  runId: string | null;
  /** ISO 8601. Null if the state can't be read: then values and writes are empty, and the log has the reason. */
  createdAt: string | null;
  /** With `run_id`, if a run wrote it. */
  metadata: JsonObject;
  channelVersions: Record<string, number | string>;
  versionsSeen: Record<string, Record<string, number | string>>;
  /** One line of JSON per channel with a value, as clients see it: messages flat, dates ISO. */
  values: Map<string, string>;
  /** The writes of the tasks after this checkpoint, as clients see them, by task and index. */
  pendingWrites: PendingWrite[];
}

export interface PendingWrite {
  taskId: string;
  channel: string;
  /** One line of JSON; undefined for the value `undefined`. */
  value: string | undefined;
}

export interface HistoryOptions {
  /** At most this many, newest first. */
  limit: number;
  /** Only checkpoints older than this one. */
  beforeCheckpointId?: string;
  /** Only this checkpoint. */
  checkpointId?: string;
  /** Only checkpoints whose metadata contain this. */
  metadataFilter?: JsonObject;
  /** Awaited before a large checkpoint is read. May be called several times. */
  whenLarge?: WhenLarge | undefined;
}

export interface HeadOptions {
  /** The only channels to read. */
  channels?: ReadonlySet<string> | undefined;
  /** False for scans of many threads, which must not evict cached threads. */
  remember?: boolean;
  /** Awaited before a large checkpoint is read. May be called several times. */
  whenLarge?: WhenLarge | undefined;
}

/** `GET /threads/{id}/storage`. Bytes of the stored text and JSON, before compression and indexes. */
export interface ThreadStorage {
  thread_id: string;
  total_bytes: number;
  checkpoints: { count: number; bytes: number };
  channel_values: {
    count: number;
    bytes: number;
    by_channel: Record<string, { versions: number; bytes: number }>;
  };
  pending_writes: { count: number; bytes: number };
}

export interface CheckpointStorage {
  /** Not fenced: for state updates and for reads through the graph. */
  readonly saver: BaseCheckpointSaver;
  /** For one read through the graph. */
  saverForRead(filter: TupleFilter): BaseCheckpointSaver;
  saverForAttempt(options: AttemptOptions): AttemptSaver;
  /**
   * For one update of a thread without a run in progress. If a run exists when the update is stored, `flush()` rejects
   * with `threadBusy` and nothing is stored. `threadVersion`: the row's `version` before the first read; if the row has
   * changed since, `flush()` rejects with a `ThreadChangedError`.
   */
  saverForIdleThread(threadVersion?: string): AttemptSaver;
  /** For checkpoints of a new thread: not fenced, `flush()` waits for the last write. */
  saverForImport(): AttemptSaver;

  /**
   * The newest checkpoint of a thread, by default of its root graph. Awaits `whenLarge` before it reads or returns a
   * large checkpoint.
   */
  readHead(
    threadId: string,
    checkpointNs?: string,
    whenLarge?: WhenLarge,
  ): Promise<StoredCheckpoint | undefined>;
  readAt(
    threadId: string,
    checkpointNs: string,
    checkpointId: string,
    whenLarge?: WhenLarge,
  ): Promise<StoredCheckpoint | undefined>;
  /** Newest first, each read on demand. An unreadable checkpoint comes without values. */
  readHistory(
    threadId: string,
    checkpointNs: string,
    options: HistoryOptions,
  ): AsyncGenerator<StoredCheckpoint, void, undefined>;
  /**
   * The newest checkpoint of each thread's root graph, without pending writes, in the order of the ids, each read on
   * demand. Omits threads without a readable checkpoint.
   */
  readHeads(
    threadIds: readonly string[],
    options?: HeadOptions,
  ): AsyncGenerator<StoredCheckpoint, void, undefined>;
  /** The id of the newest checkpoint of the root graph that a run wrote. */
  latestOfRun(threadId: string, runId: string): Promise<string | undefined>;

  /** Rolls a run back: deletes its checkpoints with their writes. */
  deleteRun(threadId: string, runId: string, queryable?: Queryable): Promise<void>;
  deleteThread(threadId: string, queryable?: Queryable): Promise<void>;
  /** Copies all checkpoints, inside the database. The other thread must have none. */
  copyThread(fromThreadId: string, toThreadId: string, queryable?: Queryable): Promise<void>;
  /**
   * Keeps only the newest checkpoint of each graph that the thread still needs. The caller holds the lock on the
   * thread's row, has seen that no run is in progress, and changes the row.
   */
  keepLatest(threadId: string, queryable?: Queryable): Promise<void>;
  /** Merges metadata into the root graph's newest checkpoint; returns its id, or undefined if there is none. */
  mergeHeadMetadata(threadId: string, metadata: JsonObject): Promise<string | undefined>;
  storage(threadId: string): Promise<ThreadStorage>;
}
