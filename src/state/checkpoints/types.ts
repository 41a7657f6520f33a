import type { BaseCheckpointSaver, CheckpointTuple } from "@langchain/langgraph-checkpoint";
import type { Database, Queryable } from "../../platform/database/database.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { ValueClasses } from "../values/classes.ts";

export interface CheckpointStorageOptions {
  database: Database;
  /** For contents; default 64 MiB. */
  cacheBytes?: number;
  /** Of JSON; default: the limit in state/values/encoding.ts. */
  valueCharactersAtMost?: number;
  /** Called after each statement that stored checkpoints, with its seconds. */
  onWritten?: ((seconds: number) => void) | undefined;
  logger: Logger;
}

/** The owner of a lease. */
export interface AttemptOptions {
  threadId: string;
  runId: string;
  attempt: number;
  /**
   * As in LangGraph; default `async`. With `sync`, `put` and `putWrites` resolve on commit; otherwise they wait only
   * for room in the queue, and `flush()` waits for the commit.
   */
  durability?: "sync" | "async" | "exit";
  /** Skips the first read, because the thread has only checkpoints of this attempt. */
  threadIsEmpty?: boolean;
  /** Called after each `put` and `putWrites` that did not wait for the database. The graph awaits the promise. */
  beforeNextStep?: () => Promise<void> | undefined;
  /**
   * Awaited before each statement that stores state. A stored step does not run again after a crash, so its events must
   * be stored first.
   */
  beforeWrite?: () => Promise<void> | undefined;
  /** For `whenReadable`. */
  observesSteps?: boolean;
  /**
   * LangGraph's own metadata win over these. Omits reserved keys, values above 1,000 characters, and all values beyond
   * 8,000 characters.
   */
  metadata?: JsonObject;
  /** Keys that no config gave. They stay searchable with encryption. */
  searchableMetadata?: readonly string[];
}

/**
 * Changes a checkpoint of the root graph before LangGraph gets it (graphs/pending-writes.ts). `read` builds the tuple
 * from new objects each time.
 */
export type TupleFilter = (
  tuple: CheckpointTuple,
  read: () => Promise<CheckpointTuple>,
) => Promise<CheckpointTuple>;

export interface ClassedSaver {
  /**
   * For a graph whose copy of LangGraph has these classes; call this before the first read. An attempt's checkpointer
   * adopts the classes, a shared one returns another checkpointer.
   */
  withClasses(classes: ValueClasses): BaseCheckpointSaver;
}

export interface AttemptSaver extends BaseCheckpointSaver {
  /** Set this before the first read. */
  filter: TupleFilter | undefined;
  /**
   * The last call for the root graph was a `putWrites`, and no task of that step failed or interrupted. If the run
   * fails now, a reducer may have refused the write.
   */
  readonly endsWithWrites: boolean;
  /**
   * What a graph is known to have besides what the saver sees: an update of a state may show nothing of a delta channel
   * that it does not write.
   */
  noteDeltaChannels(threadId: string, checkpointNs: string, channels: readonly string[]): void;
  /**
   * Resolves on commit. Rejects with a `LeaseLostError` if the attempt is no longer current, or with the database's
   * error; then the saver refuses every call.
   */
  flush(): Promise<void>;
  /**
   * The last checkpoint committed without waiting for the disk. A crash may lose it until a later commit waits for the
   * disk.
   */
  readonly lastUnsafe: { checkpointNs: string; checkpointId: string } | undefined;
  /**
   * Resolves when clients can read what the newest task of this graph wrote: the checkpoint of its step if the step is
   * over, else the task's writes. Undefined: they can, or the graph stores nothing. Never resolves after a failure.
   */
  whenReadable(checkpointNs: string, isStepOver: boolean): Promise<void> | undefined;
  /** Aborts with the error as soon as the saver fails. */
  readonly failed: AbortSignal;
}

export interface StoredCheckpoint {
  threadId: string;
  checkpointNs: string;
  checkpointId: string;
  parentCheckpointId: string | null;
  /** Null for a state update. */
  runId: string | null;
  /** ISO 8601. Null if the state can't be read: the log has the reason. */
  createdAt: string | null;
  /** With `run_id`, if a run wrote it. */
  metadata: JsonObject;
  /** One line of JSON per channel with a value, as clients see it. Empty beside a `tuple`. */
  values: Map<string, string>;
  /** For a graph with these `classes`, if they were asked for and the state can be read. */
  tuple: CheckpointTuple | undefined;
  /** By task and index. */
  pendingWrites: PendingWrite[];
}

export interface PendingWrite {
  taskId: string;
  channel: string;
  /** One line of JSON; undefined for the value `undefined`. */
  value: string | undefined;
}

export interface ReadOptions {
  /** Of the graph that gets the `tuple`. */
  classes?: ValueClasses | undefined;
}

export interface HistoryOptions extends ReadOptions {
  /** Newest first. */
  limit: number;
  beforeCheckpointId?: string;
  checkpointId?: string;
  metadataFilter?: JsonObject;
}

export interface HeadOptions {
  channels?: ReadonlySet<string> | undefined;
}

/** The answer of `GET /threads/{id}/storage`. Bytes without compression and indexes. */
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

/** Whether a run wrote the newest checkpoint of its thread, or only older ones, or none. */
export type PlaceOfRun = "newest" | "overtaken" | "none";

export interface CheckpointStorage {
  /** Not fenced: for state updates and for reads through the graph. */
  readonly saver: BaseCheckpointSaver;
  saverForRead(filter: TupleFilter): BaseCheckpointSaver;
  saverForAttempt(options: AttemptOptions): AttemptSaver;
  /**
   * For one update of an idle thread; if a run is in progress, `flush()` rejects with `threadBusyForUpdate` and stores
   * nothing. If the row's `version` is not `threadVersion`, `flush()` rejects with a `ThreadChangedError`.
   */
  saverForIdleThread(threadVersion?: string): AttemptSaver;
  /** For checkpoints of a new thread. Not fenced. */
  saverForImport(): AttemptSaver;

  /** Reads the root graph by default. */
  readHead(
    threadId: string,
    checkpointNs?: string,
    options?: ReadOptions,
  ): Promise<StoredCheckpoint | undefined>;
  readAt(
    threadId: string,
    checkpointNs: string,
    checkpointId: string,
    options?: ReadOptions,
  ): Promise<StoredCheckpoint | undefined>;
  /** Newest first, each read on demand. An unreadable checkpoint comes without values. */
  readHistory(
    threadId: string,
    checkpointNs: string,
    options: HistoryOptions,
  ): AsyncGenerator<StoredCheckpoint, void, undefined>;
  /**
   * Root graphs without pending writes, in the order of the ids, each read on demand. Omits threads without a readable
   * checkpoint.
   */
  readHeads(
    threadIds: readonly string[],
    options?: HeadOptions,
  ): AsyncGenerator<StoredCheckpoint, void, undefined>;
  /** Of the root graph. */
  latestOfRun(threadId: string, runId: string): Promise<string | undefined>;
  /** Of the root graph. */
  placeOfRun(threadId: string, runId: string): Promise<PlaceOfRun>;

  /** Deletes the run's checkpoints with their writes. */
  deleteRun(threadId: string, runId: string, queryable?: Queryable): Promise<void>;
  /**
   * For an attempt that gives its answers again. Otherwise a task that had got its first one before the crash would take
   * it for the answer to its second question.
   */
  takeBackAnswers(attempt: Required<Pick<AttemptOptions, "threadId" | "runId" | "attempt">>): Promise<void>;
  deleteThread(threadId: string, queryable?: Queryable): Promise<void>;
  /** The other thread must have no checkpoints. */
  copyThread(fromThreadId: string, toThreadId: string, queryable?: Queryable): Promise<void>;
  /**
   * Keeps the newest checkpoint of each graph that the thread still needs. The caller locks the thread's row, checks
   * that no run is in progress, and changes the row.
   */
  keepLatest(threadId: string, queryable?: Queryable): Promise<void>;
  /** Changes the root graph's newest checkpoint and returns its id. */
  mergeHeadMetadata(threadId: string, metadata: JsonObject): Promise<string | undefined>;
  storage(threadId: string): Promise<ThreadStorage>;
  /** The number of writes of tasks beside each checkpoint of the thread. */
  countWrites(
    threadId: string,
  ): Promise<Array<{ checkpointNs: string; checkpointId: string; writes: number }>>;
}
