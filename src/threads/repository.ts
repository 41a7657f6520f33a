import type { ThreadTtl } from "../project/thread-expiry.ts";
import type { Database, Queryable } from "../database/database.ts";
import { hasRoomFor } from "../database/merging.ts";
import { threadBusy } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import { toJsonb } from "../lib/jsonb.ts";
import { RECORD_COLUMNS, type ThreadRecordRow } from "./record.ts";

export interface NewThread {
  threadId?: string | undefined;
  /** JSON text of an object. */
  metadata: string;
  ttl?: ThreadTtl | undefined;
}

/** What reads and updates of a state need of a thread. */
export interface ThreadStanding {
  graphId: string | null;
  busy: boolean;
  /** Another one after every change of the thread's row. */
  version: string;
}

/** What the head checkpoint says, for the thread's row. */
export interface StateOutcome {
  status: "idle" | "interrupted";
  /** JSON text of `{task_id: [{id, value}]}`. */
  interrupts: string;
}

export interface ThreadRepository {
  /** Undefined if a thread with this id is there already; it is left as it is. */
  insert(thread: NewThread): Promise<ThreadRecordRow | undefined>;
  find(threadId: string): Promise<ThreadRecordRow | undefined>;
  standing(threadId: string): Promise<ThreadStanding | undefined>;
  /**
   * Merges `metadata` (JSON text) into the thread's; undefined if there is no such thread, or no room for them (see
   * database/merging.ts).
   */
  patch(threadId: string, metadata: string, ttl: ThreadTtl | undefined): Promise<ThreadRecordRow | undefined>;
  /** Deletes those of these threads that have no run in progress; the ids of those. So no run ends. */
  deleteIdle(queryable: Queryable, threadIds: readonly string[]): Promise<string[]>;
  /** Locks those of these threads that are there, so that they can be deleted with their runs; their ids. */
  lockForDeletion(transaction: Queryable, threadIds: readonly string[]): Promise<string[]>;
  /**
   * Locks a thread for pruning; false if it isn't there or has a run in progress. A new run and an update of the
   * state wait until the transaction is over; an update that had read before finds the thread changed.
   */
  lockForPrune(transaction: Queryable, threadId: string): Promise<boolean>;
  /** A new thread with the record of another; undefined if that one is not there. */
  insertCopy(
    threadId: string,
    transaction: Queryable,
  ): Promise<(ThreadRecordRow & { was_busy: boolean }) | undefined>;
  /** Writes what an update of the state has changed; leaves a thread alone whose run decides that at its end. */
  recordOutcome(threadId: string, outcome: StateOutcome): Promise<void>;
  /** Throws `threadBusy` if a run is pending or running. For early refusal: the saver's put decides. */
  assertIdle(threadId: string, standing: ThreadStanding): void;
}

// One statement, no look before it: two creators of one id meet at the primary key.
const INSERT = `
  insert into threadloom.threads (thread_id, metadata, ttl_strategy, ttl_minutes, expires_at)
  values ($1, $2::jsonb, $3, $4::float8, now() + $4::float8 * interval '1 minute')
  on conflict (thread_id) do nothing
  returning ${RECORD_COLUMNS}`;

const FIND = `select ${RECORD_COLUMNS} from threadloom.threads where thread_id = $1`;

const STANDING = `
  select metadata ->> 'graph_id' as "graphId", unfinished_runs > 0 as busy, version::text as version
    from threadloom.threads where thread_id = $1`;

const PATCH = `
  update threadloom.threads
     set metadata = metadata || $2::jsonb,
         ttl_strategy = coalesce($3, ttl_strategy),
         ttl_minutes = coalesce($4::float8, ttl_minutes),
         expires_at = now() + coalesce($4::float8, ttl_minutes) * interval '1 minute',
         updated_at = now()
   where thread_id = $1 and ($2::jsonb = '{}' or ${hasRoomFor("metadata || $2::jsonb")})
  returning ${RECORD_COLUMNS}`;

// In the order of their ids, so that two deletions of the same threads wait for each other and don't deadlock.
const DELETE_IDLE = `
  with idle as (
    select thread_id from threadloom.threads
     where thread_id = any($1::uuid[]) and unfinished_runs = 0 order by thread_id for update)
  delete from threadloom.threads using idle where threads.thread_id = idle.thread_id
  returning threads.thread_id`;

const LOCK_FOR_DELETION = `
  select thread_id from threadloom.threads where thread_id = any($1::uuid[]) order by thread_id for update`;

// Until the next change of its state there is nothing to prune. `updated_at` stays: a user has changed nothing.
const LOCK_FOR_PRUNE = `
  update threadloom.threads set expires_at = case ttl_strategy when 'keep_latest' then null else expires_at end,
    version = version + 1
   where thread_id = $1 and unfinished_runs = 0
  returning thread_id`;

// A copy has no run: a busy thread is, for the copy, stopped at its last checkpoint. What that means for the status
// depends on the graph; the caller settles it.
const INSERT_COPY = `
  insert into threadloom.threads (thread_id, status, metadata, config, interrupts, error, ttl_strategy, ttl_minutes, expires_at,
    state_updated_at)
  select $2, case when status = 'busy' then 'idle' else status end, metadata, config, interrupts, error,
         ttl_strategy, ttl_minutes, now() + ttl_minutes * interval '1 minute', state_updated_at
    from threadloom.threads where thread_id = $1
  returning ${RECORD_COLUMNS},
    (select original.status = 'busy' from threadloom.threads original where original.thread_id = $1) as was_busy`;

const RECORD_OUTCOME = `
  update threadloom.threads
     set status = $2, interrupts = $3::jsonb, error = null, version = version + 1, updated_at = now(), state_updated_at = now(),
         expires_at = now() + ttl_minutes * interval '1 minute'
   where thread_id = $1 and unfinished_runs = 0`;

export const createThreadRepository = (database: Database): ThreadRepository => {
  const ids = (rows: { thread_id: string }[]) => rows.map((row) => row.thread_id);
  return {
    async insert({ threadId = newId(), metadata, ttl }) {
      const rows = await database.query<ThreadRecordRow>(INSERT, [
        threadId,
        metadata,
        ttl?.strategy,
        ttl?.minutes,
      ]);
      return rows[0];
    },
    async find(threadId) {
      return (await database.query<ThreadRecordRow>(FIND, [threadId]))[0];
    },
    async standing(threadId) {
      return (await database.query<ThreadStanding>(STANDING, [threadId]))[0];
    },
    async patch(threadId, metadata, ttl) {
      const values = [threadId, metadata, ttl?.strategy, ttl?.minutes];
      return (await database.query<ThreadRecordRow>(PATCH, values))[0];
    },
    async deleteIdle(queryable, threadIds) {
      return ids(await queryable.query(DELETE_IDLE, [threadIds]));
    },
    async lockForDeletion(transaction, threadIds) {
      return ids(await transaction.query(LOCK_FOR_DELETION, [threadIds]));
    },
    async lockForPrune(transaction, threadId) {
      return (await transaction.query(LOCK_FOR_PRUNE, [threadId])).length > 0;
    },
    async insertCopy(threadId, transaction) {
      const rows = await transaction.query<ThreadRecordRow & { was_busy: boolean }>(INSERT_COPY, [
        threadId,
        newId(),
      ]);
      return rows[0];
    },
    async recordOutcome(threadId, { status, interrupts }) {
      await database.query(RECORD_OUTCOME, [threadId, status, toJsonb(interrupts).jsonb]);
    },
    assertIdle(threadId, standing) {
      if (standing.busy) throw threadBusy(threadId);
    },
  };
};
