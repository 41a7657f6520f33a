import type { Visibility } from "../../access/visibility.ts";
import type { Database } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";
import type { RunStatus, ThreadStatus } from "../../platform/database/tables.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import { threadNotFound } from "../../platform/domain/errors.ts";

export interface ThreadStanding {
  status: ThreadStatus;
  /** `{task_id: [{id, value}]}` */
  interrupts: JsonObject;
  /** Grows with each created run. */
  turns: number;
  /** 0: none has begun. */
  begun: number;
}

/** The run that began last, else the last one cancelled before it began. */
export interface NewestRun {
  runId: string;
  assistantId: string;
  graphId: string;
  turn: number;
  status: RunStatus;
  error: JsonObject | null;
  /** Milliseconds since 1970. */
  endedAt: number;
  /** Milliseconds, by the database's clock. */
  endedAgo: number;
  /** Whether the thread is interrupted. */
  waits: boolean;
  unfinished: number;
  /** May be that of a run cancelled before it began. */
  lastTurn: number;
}

export interface EndedRow {
  status: RunStatus;
  turn: number;
  error: JsonObject | null;
  /** Milliseconds since 1970. */
  endedAt: number;
  /** Null if the thread did not stop with this run, or another has begun since. */
  waiting: JsonObject | null;
}

const ON_THREAD = { threadId: "uuid", visible: "fragment" } as const;
const EXISTS = statement(
  ON_THREAD,
  (sql) => `select from threadloom.threads where thread_id = ${sql.threadId} and ${sql.visible}`,
);
const IS_HIDDEN = statement(
  ON_THREAD,
  (sql) => `select from threadloom.threads
  where thread_id = ${sql.threadId} and not coalesce(${sql.visible}, false)`,
);

/** Indexes: threads_pkey, runs_one_begun_per_thread. */
const STANDING = statement(
  ON_THREAD,
  (sql) => `select t.status, t.interrupts, t.turns, greatest(t.turns - t.unfinished_runs,
    (select r.turn from threadloom.runs r where r.thread_id = t.thread_id and r.status = 'running' limit 1))::int as begun
  from threadloom.threads t where t.thread_id = ${sql.threadId} and ${sql.visible}`,
);

/** Index: threads_pkey. */
const STATE_CHANGED_AT = statement(
  { threadId: "uuid" },
  (sql) =>
    `select extract(epoch from state_updated_at)::text as at from threadloom.threads where thread_id = ${sql.threadId}`,
);

const ENDED_AT = `extract(epoch from r.updated_at)::float8 * 1000 as "endedAt"`;

/** Reads all runs of the thread (8 ms for 10,000). Indexes: runs_by_thread, threads_pkey. */
const NEWEST = statement(
  { threadId: "uuid" },
  (sql) => `select r.run_id as "runId", r.assistant_id as "assistantId", r.graph_id as "graphId", r.turn,
    r.status, r.error, ${ENDED_AT},
    extract(epoch from now() - r.updated_at)::float8 * 1000 as "endedAgo",
    t.status = 'interrupted' and t.unfinished_runs = 0 as waits, t.unfinished_runs as unfinished, max(r.turn) over () as "lastTurn"
  from threadloom.runs r join threadloom.threads t on t.thread_id = r.thread_id
  where r.thread_id = ${sql.threadId} and r.turn > 0 order by (r.attempt > 0) desc, r.turn desc limit 1`,
);

/** Indexes: runs_pkey, threads_pkey, runs_by_thread. */
const ENDED = statement(
  { threadId: "uuid", runId: "uuid" },
  (sql) => `select r.status, r.turn, r.error, ${ENDED_AT},
    case when t.status = 'interrupted' and t.unfinished_runs = 0 and r.attempt > 0
      and not exists (select from threadloom.runs n where n.thread_id = ${sql.threadId} and n.turn > r.turn and n.attempt > 0)
    then t.interrupts end as waiting
  from threadloom.runs r join threadloom.threads t on t.thread_id = r.thread_id
  where r.thread_id = ${sql.threadId} and r.run_id = ${sql.runId}`,
);

/** A long conversation costs no more than this. */
const REPLAYED_RUNS = 20;
const MEASURED_EVENTS = 5_000;

/**
 * The first event of the newest runs with at most `bytesAtMost` in the log, or of the newest run. Indexes:
 * runs_by_thread, run_events_pkey.
 */
const REPLAY_START = statement(
  { threadId: "uuid", bytesAtMost: "bigint" },
  (sql) => `select min(first)::float8 as first from (
  select first, sum(bytes) over newest_first as bytes, row_number() over newest_first as place
  from (select run_id, turn from threadloom.runs where thread_id = ${sql.threadId} and turn > 0 and attempt > 0 order by turn desc limit ${REPLAYED_RUNS}) r,
    lateral (select min(thread_seq) as first, coalesce(sum(octet_length(data) + coalesce(string_bytes, 0)), 0) as bytes from (
      select thread_seq, data, string_bytes from threadloom.run_events
      where thread_id = ${sql.threadId} and run_id = r.run_id order by seq limit ${MEASURED_EVENTS}) e) measured
  where first is not null
  window newest_first as (order by turn desc)) replayed
where bytes <= ${sql.bytesAtMost} or place = 1`,
);

export const createStreamingRepository = (database: Database) => ({
  async exists(visibility: Visibility<"threads">, threadId: string): Promise<boolean> {
    return (await EXISTS.query(database, { threadId, visible: visibility.on("metadata") })).length > 0;
  },

  async isHidden(visibility: Visibility<"threads">, threadId: string): Promise<boolean> {
    if (visibility.hidesNothing) return false;
    return (await IS_HIDDEN.query(database, { threadId, visible: visibility.on("metadata") })).length > 0;
  },

  /** For a caller who sees the thread; undefined if it is deleted. */
  async stateChangedAt(threadId: string): Promise<string | undefined> {
    const [row] = await STATE_CHANGED_AT.query<{ at: string }>(database, { threadId });
    return row?.at;
  },

  async standing(visibility: Visibility<"threads">, threadId: string): Promise<ThreadStanding | undefined> {
    const visible = visibility.on("t.metadata");
    const [row] = await STANDING.query<ThreadStanding>(database, { threadId, visible });
    return row && database.encryption.decrypted("threads", row, { thread_id: threadId });
  },

  /** For a caller who sees the thread. */
  async newestRun(threadId: string): Promise<NewestRun | undefined> {
    const [row] = await NEWEST.query<NewestRun>(database, { threadId });
    return row && database.encryption.decrypted("runs", row, { run_id: row.runId });
  },

  async ended(threadId: string, runId: string): Promise<EndedRow | undefined> {
    const [row] = await ENDED.query<EndedRow>(database, { threadId, runId });
    if (row === undefined) return undefined;
    const { encryption } = database;
    const key = { thread_id: threadId };
    return {
      ...encryption.decrypted("runs", row, { run_id: runId }),
      waiting: encryption.decryptedValue("threads", "interrupts", row.waiting, key),
    };
  },

  async replayStart(threadId: string, bytesAtMost: number): Promise<number | undefined> {
    const [row] = await REPLAY_START.query<{ first: number | null }>(database, { threadId, bytesAtMost });
    return row?.first ?? undefined;
  },
});

export type StreamingRepository = ReturnType<typeof createStreamingRepository>;

/** Depends on the caller and the thread's current metadata. */
export interface ReadAccess {
  readonly threadId: string;
  readonly caller: Caller;
  readonly hidesNothing: boolean;
  exists(): Promise<boolean>;
  /** For a thread that was visible: false if it is deleted. Rejects if it is hidden now. */
  stillExists(): Promise<boolean>;
  /** Rejects if the caller may read no threads, or a thread that was visible is hidden now. */
  reauthorize(caller: Caller): Promise<void>;
}

/** Rejects with `forbidden` if the caller may read no threads. */
export const openReadAccess = async (
  authorize: Authorize,
  repository: Pick<StreamingRepository, "exists" | "isHidden">,
  caller: Caller,
  threadId: string,
): Promise<ReadAccess> => {
  const mayRead = async (caller: Caller) =>
    await authorize(caller, "threads", "read", { thread_id: threadId });
  let seen = { caller, visibility: await mayRead(caller) };
  /** Readers wait for a missing thread, and a deleted thread may be recreated. */
  let existed = seen.visibility.hidesNothing;
  const readAccess: ReadAccess = {
    threadId,
    get caller() {
      return seen.caller;
    },
    get hidesNothing() {
      return seen.visibility.hidesNothing;
    },
    async exists() {
      const exists = await repository.exists(seen.visibility, threadId);
      existed ||= exists;
      return exists;
    },
    async stillExists() {
      if (readAccess.hidesNothing || (await readAccess.exists())) return true;
      await readAccess.reauthorize(readAccess.caller);
      return false;
    },
    async reauthorize(caller) {
      const visibility = await mayRead(caller);
      const isHidden = await repository.isHidden(visibility, threadId);
      seen = { caller, visibility };
      if (existed && isHidden) throw threadNotFound(threadId);
    },
  };
  return readAccess;
};
