import type { Visibility } from "../../access/visibility.ts";
import type { Database } from "../../platform/database/database.ts";
import { firstSeqOf } from "../../engine/events/event-ids.ts";
import type { RunStatus, ThreadStatus } from "../../platform/database/tables.ts";
import type { JsonObject } from "../../platform/lib/json.ts";

/** A thread's row for commands. */
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
  /** By the database's clock. */
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

/** Indexes: threads_pkey, runs_one_running_per_thread. */
const STANDING = `select t.status, t.interrupts, t.turns, greatest(t.turns - t.unfinished_runs,
    (select r.turn from threadloom.runs r where r.thread_id = t.thread_id and r.status = 'running' limit 1))::int as begun
  from threadloom.threads t where t.thread_id = $1 and `;

/** Index: threads_pkey. */
const STATE_CHANGED_AT = `select extract(epoch from state_updated_at)::text as at from threadloom.threads where thread_id = $1`;

const ENDED_AT = `extract(epoch from r.updated_at)::float8 * 1000 as "endedAt"`;

/** Reads all runs of the thread (8 ms for 10,000). Indexes: runs_by_thread, threads_pkey. */
const NEWEST = `select r.run_id as "runId", r.assistant_id as "assistantId", r.graph_id as "graphId", r.turn, r.status, r.error, ${ENDED_AT},
    extract(epoch from now() - r.updated_at)::float8 * 1000 as "endedAgo",
    t.status = 'interrupted' and t.unfinished_runs = 0 as waits, t.unfinished_runs as unfinished, max(r.turn) over () as "lastTurn"
  from threadloom.runs r join threadloom.threads t on t.thread_id = r.thread_id
  where r.thread_id = $1 and r.turn > 0 order by (r.attempt > 0) desc, r.turn desc limit 1`;

/** Indexes: runs_pkey, threads_pkey, runs_by_thread. */
const ENDED = `select r.status, r.turn, r.error, ${ENDED_AT},
    case when t.status = 'interrupted' and t.unfinished_runs = 0 and r.attempt > 0
      and not exists (select from threadloom.runs n where n.thread_id = $1 and n.turn > r.turn and n.attempt > 0)
    then t.interrupts end as waiting
  from threadloom.runs r join threadloom.threads t on t.thread_id = r.thread_id
  where r.thread_id = $1 and r.run_id = $2`;

/** A long conversation costs no more than this. */
const REPLAYED_RUNS = 20;
const MEASURED_EVENTS = 5_000;

/**
 * The first event of the newest runs that have at most $2 bytes in the log, or of the newest run. Reads only the length
 * of values. Indexes: runs_by_thread, run_events_pkey.
 */
const REPLAY_START = `select min(first)::float8 as first from (
  select first, sum(bytes) over newest_first as bytes, row_number() over newest_first as place
  from (select run_id, turn from threadloom.runs where thread_id = $1 and turn > 0 and attempt > 0 order by turn desc limit ${REPLAYED_RUNS}) r,
    lateral (select min(thread_seq) as first, coalesce(sum(octet_length(data)), 0) as bytes from (
      select thread_seq, data from threadloom.run_events
      where thread_id = $1 and run_id = r.run_id order by seq limit ${MEASURED_EVENTS}) e) measured
  where first is not null
  window newest_first as (order by turn desc)) replayed
where bytes <= $2 or place = 1`;

/** Index: run_events_pkey. */
const FIRST_SEQ = `select thread_seq::float8 as seq from threadloom.run_events
  where thread_id = $1 and run_id = $2 and seq >= $3 and seq < $4 order by seq limit 1`;

export const createStreamingRepository = (database: Database) => ({
  async exists(visibility: Visibility<"threads">, threadId: string): Promise<boolean> {
    const values: unknown[] = [threadId];
    const visible = visibility.condition("metadata", values);
    const text = `select from threadloom.threads where thread_id = $1 and ${visible}`;
    return (await database.query(text, values)).length > 0;
  },

  async isHidden(visibility: Visibility<"threads">, threadId: string): Promise<boolean> {
    if (visibility.hidesNothing) return false;
    const values: unknown[] = [threadId];
    const visible = visibility.condition("metadata", values);
    const text = `select from threadloom.threads where thread_id = $1 and not coalesce(${visible}, false)`;
    return (await database.query(text, values)).length > 0;
  },

  /** For a caller who sees the thread; undefined if it is deleted. */
  async stateChangedAt(threadId: string): Promise<string | undefined> {
    const [row] = await database.query<{ at: string }>(STATE_CHANGED_AT, [threadId]);
    return row?.at;
  },

  async standing(visibility: Visibility<"threads">, threadId: string): Promise<ThreadStanding | undefined> {
    const values: unknown[] = [threadId];
    const visible = visibility.condition("t.metadata", values);
    const [row] = await database.query<ThreadStanding>(STANDING + visible, values);
    return row && database.encryption.decrypted("threads", row, { thread_id: threadId });
  },

  /** For a caller who sees the thread. */
  async newestRun(threadId: string): Promise<NewestRun | undefined> {
    const [row] = await database.query<NewestRun>(NEWEST, [threadId]);
    return row && database.encryption.decrypted("runs", row, { run_id: row.runId });
  },

  /** Undefined if the run is deleted. */
  async ended(threadId: string, runId: string): Promise<EndedRow | undefined> {
    const [row] = await database.query<EndedRow>(ENDED, [threadId, runId]);
    if (row === undefined) return undefined;
    const { encryption } = database;
    const key = { thread_id: threadId };
    return {
      ...encryption.decrypted("runs", row, { run_id: runId }),
      waiting: encryption.decryptedValue("threads", "interrupts", row.waiting, key),
    };
  },

  /** Undefined if the log is empty. */
  async replayStart(threadId: string, bytesAtMost: number): Promise<number | undefined> {
    const [row] = await database.query<{ first: number | null }>(REPLAY_START, [threadId, bytesAtMost]);
    return row?.first ?? undefined;
  },

  async firstSeq(threadId: string, runId: string, attempt: number): Promise<number | undefined> {
    const [row] = await database.query<{ seq: number | null }>(FIRST_SEQ, [
      threadId,
      runId,
      firstSeqOf(attempt),
      firstSeqOf(attempt + 1),
    ]);
    return row?.seq ?? undefined;
  },
});

export type StreamingRepository = ReturnType<typeof createStreamingRepository>;
