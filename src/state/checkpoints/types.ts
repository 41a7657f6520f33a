import type { WhenLarge } from "../../platform/lib/large-answers.ts";
import type { BaseCheckpointSaver, CheckpointTuple } from "@langchain/langgraph-checkpoint";
import type { Database, Queryable } from "../../platform/database/database.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { ValueClasses } from "../values/classes.ts";

export interface CheckpointStorageOptions {
  database: Database;
  /** How many bytes of threads' elements and contents this process may remember (default 64 MiB). */
  cacheBytes?: number;
  /** Characters that the JSON of one value may have; any number that fits a text if left out. */
  valueCharactersAtMost?: number;
  logger: Logger;
}

/** One execution of a run: the owner of a lease. */
export interface AttemptOptions {
  threadId: string;
  runId: string;
  attempt: number;
  /**
   * As in LangGraph. With `sync`, `put` and `putWrites` resolve when what they were given is committed. Otherwise
   * they resolve when it is accepted: it goes out at once, together with what came in during the statement before,
   * and the graph doesn't wait for it, unless so much waits already that it would fill the memory; `flush()` does.
   * Default `async`.
   */
  durability?: "sync" | "async" | "exit";
  /** True: the thread has no checkpoints but those that this attempt will write, so the first read is none. */
  threadIsEmpty?: boolean;
  /** Called after each `put` and `putWrites` that did not wait for the database. The graph waits for the promise. */
  beforeNextStep?: () => Promise<void> | undefined;
  /**
   * Called before each statement that stores what the saver was given; the statement waits for the promise. After a crash a
   * step that is stored is not executed again, so what it told has to be stored by then.
   */
  beforeWrite?: () => Promise<void> | undefined;
  /**
   * Goes into the metadata of every checkpoint of the attempt, under what LangGraph itself puts there. Left out are
   * keys that have a meaning of their own there, values above 1,000 characters, and what comes after 8,000.
   */
  metadata?: JsonObject;
  /** The keys of `metadata` that are found by a filter though what is stored is encrypted: those that no configuration gave. */
  searchableMetadata?: readonly string[];
}

/**
 * Changes a checkpoint of the root graph before the saver hands it to LangGraph. `read` makes the same checkpoint again,
 * of new objects each time. See graphs/pending-writes.ts.
 */
export type TupleFilter = (
  tuple: CheckpointTuple,
  read: () => Promise<CheckpointTuple>,
) => Promise<CheckpointTuple>;

/** Every checkpointer of this room makes the instances that it gives out. */
export interface ClassedSaver {
  /**
   * The checkpointer for a graph whose copy of LangGraph has these classes; to be asked for before the first read. One that
   * belongs to somebody is told, and stays; one that all share makes another.
   */
  withClasses(classes: ValueClasses): BaseCheckpointSaver;
}

/** The checkpointer of one attempt. */
export interface AttemptSaver extends BaseCheckpointSaver {
  /** To be set before the first read; without one all is given out. */
  filter: TupleFilter | undefined;
  /**
   * True if the last call for the root graph was a `putWrites`, and no task of that step has failed or asked a question.
   * If the run fails now, a reducer may have refused what the task wrote.
   */
  readonly endsWithWrites: boolean;
  /** The id for a new checkpoint of a thread: the one that LangGraph made, or a later one if a newer checkpoint has that. */
  idAfterAll(threadId: string, id: string): string;
  /**
   * Resolves when all it was given is committed. Rejects with a `LeaseLostError` if the attempt is no longer the
   * run's current one, or with the database's error; both stay: it refuses everything afterwards.
   */
  flush(): Promise<void>;
  /**
   * The checkpoint of the thread that was committed last without waiting for the disk; undefined if there is none. A
   * crash of the database may lose it, until a later commit waits for the disk.
   */
  readonly lastUnsafe: { checkpointNs: string; checkpointId: string } | undefined;
  /** Aborts with that error as its reason, the moment it is known. */
  readonly failed: AbortSignal;
}

/** A checkpoint as the state API needs it: ready to be sent, nothing revived. */
export interface StoredCheckpoint {
  threadId: string;
  checkpointNs: string;
  checkpointId: string;
  parentCheckpointId: string | null;
  /** The run that wrote it; null for a state update. */
  runId: string | null;
  /** ISO 8601. Null if the state can't be read, which the log explains: then it has no values and no writes. */
  createdAt: string | null;
  /** With `run_id`, if a run wrote it. */
  metadata: JsonObject;
  channelVersions: Record<string, number | string>;
  versionsSeen: Record<string, Record<string, number | string>>;
  /** One line of JSON per channel that has a value, as clients see it: messages flat, dates ISO. */
  values: Map<string, string>;
  /** What the tasks after this checkpoint wrote, as clients see it, by task and index. */
  pendingWrites: PendingWrite[];
}

export interface PendingWrite {
  taskId: string;
  channel: string;
  /** One line of JSON; undefined if that is what was written. */
  value: string | undefined;
}

export interface HistoryOptions {
  /** At most this many, newest first. */
  limit: number;
  /** Only those before (older than) this checkpoint. */
  beforeCheckpointId?: string;
  /** Only this one. */
  checkpointId?: string;
  /** Only those whose metadata contain this. */
  metadataFilter?: JsonObject;
  /** Awaited before one is read that is large. May be asked several times. */
  whenLarge?: WhenLarge | undefined;
}

export interface HeadOptions {
  /** The only channels whose values are of interest. */
  channels?: ReadonlySet<string> | undefined;
  /** False for who goes through many threads once: what others work with stays in this process's memory. */
  remember?: boolean;
  /** Awaited before one is read that is large. May be asked several times. */
  whenLarge?: WhenLarge | undefined;
}

/** `GET /threads/{id}/storage`. Bytes are those of the stored text and JSON, before compression and indexes. */
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
   * For one update of the state of a thread that has no run in progress, which the statement that stores the update
   * decides: `flush()` rejects with `threadBusy`, and nothing is stored, if there is one by then. `threadVersion`:
   * the row's `version` from before anything was read; if the row has changed since, `flush()` rejects with a
   * `ThreadChangedError`.
   */
  saverForIdleThread(threadVersion?: string): AttemptSaver;
  /** For checkpoints of a thread that this server doesn't have yet: nothing is fenced, `flush()` waits for the last. */
  saverForImport(): AttemptSaver;

  /**
   * The newest checkpoint of a thread, by default of its root graph. `whenLarge` is awaited before one is read that is
   * large, or made of much that is remembered.
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
  /** Newest first, each read when it is asked for. One that can't be read stands there without values. */
  readHistory(
    threadId: string,
    checkpointNs: string,
    options: HistoryOptions,
  ): AsyncGenerator<StoredCheckpoint, void, undefined>;
  /**
   * The newest checkpoint of the root graph of each of the threads, without pending writes, in the order of the ids,
   * each read when it is asked for; those that have none that can be read are missing.
   */
  readHeads(
    threadIds: readonly string[],
    options?: HeadOptions,
  ): AsyncGenerator<StoredCheckpoint, void, undefined>;
  /** The id of the newest checkpoint of the root graph that a run wrote. */
  latestOfRun(threadId: string, runId: string): Promise<string | undefined>;

  /** Rolls a run back: its checkpoints are gone, and what hangs on them. */
  deleteRun(threadId: string, runId: string, queryable?: Queryable): Promise<void>;
  deleteThread(threadId: string, queryable?: Queryable): Promise<void>;
  /** Copies all checkpoints, inside the database. The other thread must have none. */
  copyThread(fromThreadId: string, toThreadId: string, queryable?: Queryable): Promise<void>;
  /**
   * Keeps of a thread only the newest checkpoint of each graph that it still needs, and frees the rest. The caller
   * holds the lock on the thread's row, has seen that no run is in progress, and changes the row.
   */
  keepLatest(threadId: string, queryable?: Queryable): Promise<void>;
  /** Merges metadata into those of the root graph's newest checkpoint; its id, or undefined if there is none. */
  mergeHeadMetadata(threadId: string, metadata: JsonObject): Promise<string | undefined>;
  storage(threadId: string): Promise<ThreadStorage>;
}
