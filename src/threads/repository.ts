import { sql, type SqlBool } from "kysely";
import type { Visibility } from "../access/visibility.ts";
import type { Database, Queryable, Records } from "../database/database.ts";
import { hasRoomFor } from "../database/merging.ts";
import { threadBusy, threadNotFound } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import { toJsonb } from "../lib/jsonb.ts";
import type { ThreadTtl } from "../project/thread-expiry.ts";
import { EVERY_LONG_PART, RECORD_SELECTION, recordColumns, type ThreadRecordRow } from "./record.ts";

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

const RECORD_COLUMNS = recordColumns(EVERY_LONG_PART);

/** Raw because it names `$2` five times: the metadata may be 1 MB long, and Kysely would send them each time. */
const patch = (visible: string): string => `
  update threadloom.threads
     set metadata = metadata || $2::jsonb,
         ttl_strategy = coalesce($3, ttl_strategy),
         ttl_minutes = coalesce($4::float8, ttl_minutes),
         expires_at = now() + coalesce($4::float8, ttl_minutes) * interval '1 minute',
         updated_at = now()
   where thread_id = $1 and ($2::jsonb = '{}' or ${hasRoomFor("metadata || $2::jsonb")}) and ${visible}
  returning ${RECORD_COLUMNS}`;

/** Raw for its CTE. In the order of their ids, so that two deletions of the same threads wait for each other and don't deadlock. */
const deleteIdle = (visible: string): string => `
  with idle as (
    select thread_id from threadloom.threads
     where thread_id = any($1::uuid[]) and unfinished_runs = 0 and ${visible} order by thread_id for update)
  delete from threadloom.threads using idle where threads.thread_id = idle.thread_id
  returning threads.thread_id`;

/**
 * Raw because it inserts what it selects. A copy has no run: a busy thread is, for the copy, stopped at its last
 * checkpoint. What that means for the status depends on the graph; the caller settles it.
 */
const insertCopy = (visible: string): string => `
  insert into threadloom.threads (thread_id, status, metadata, config, interrupts, error, ttl_strategy, ttl_minutes, expires_at,
    state_updated_at)
  select $2, case when status = 'busy' then 'idle' else status end, metadata, config, interrupts, error,
         ttl_strategy, ttl_minutes, now() + ttl_minutes * interval '1 minute', state_updated_at
    from threadloom.threads where thread_id = $1 and ${visible}
  returning ${RECORD_COLUMNS},
    (select original.status = 'busy' from threadloom.threads original where original.thread_id = $1) as was_busy`;

/**
 * The SQL of single threads. What a visibility hides is as if it were not there; where a thread is only added, it is the
 * proof that somebody was asked.
 */
export const createThreadRepository = (database: Database) => {
  const { kysely } = database;

  const find = async (
    visibility: Visibility<"threads">,
    threadId: string,
  ): Promise<ThreadRecordRow | undefined> =>
    await kysely
      .selectFrom("threads")
      .select(RECORD_SELECTION)
      .where("thread_id", "=", threadId)
      .where(visibility.where("metadata"))
      .executeTakeFirst();

  return {
    /**
     * Undefined if a thread with this id is there already, which is left as it is. One statement, no look before it: two
     * creators of one id meet at the primary key.
     */
    async insert(
      _visibility: Visibility<"threads">,
      { threadId = newId(), metadata, ttl }: NewThread,
    ): Promise<ThreadRecordRow | undefined> {
      const minutes = ttl?.minutes ?? null;
      return await kysely
        .insertInto("threads")
        .values({
          thread_id: threadId,
          metadata,
          ttl_strategy: ttl?.strategy ?? null,
          ttl_minutes: minutes,
          expires_at: sql<Date | null>`now() + ${minutes}::float8 * interval '1 minute'`,
        })
        .onConflict((conflict) => conflict.column("thread_id").doNothing())
        .returning(RECORD_SELECTION)
        .executeTakeFirst();
    },

    find,

    /** Throws `threadNotFound`. */
    async get(visibility: Visibility<"threads">, threadId: string): Promise<ThreadRecordRow> {
      const row = await find(visibility, threadId);
      if (row === undefined) throw threadNotFound(threadId);
      return row;
    },

    /** Throws `threadNotFound`. */
    async standing(visibility: Visibility<"threads">, threadId: string): Promise<ThreadStanding> {
      const standing = await kysely
        .selectFrom("threads")
        .select([
          sql<string | null>`metadata ->> 'graph_id'`.as("graphId"),
          sql<boolean>`unfinished_runs > 0`.as("busy"),
          sql<string>`version::text`.as("version"),
        ])
        .where("thread_id", "=", threadId)
        .where(visibility.where("metadata"))
        .executeTakeFirst();
      if (standing === undefined) throw threadNotFound(threadId);
      return standing;
    },

    /**
     * Merges `metadata` (JSON text) into the thread's; undefined if there is no such thread, or no room for them (see
     * database/merging.ts).
     */
    async patch(
      visibility: Visibility<"threads">,
      threadId: string,
      metadata: string,
      ttl: ThreadTtl | undefined,
    ): Promise<ThreadRecordRow | undefined> {
      const values: unknown[] = [threadId, metadata, ttl?.strategy, ttl?.minutes];
      const text = patch(visibility.condition("metadata", values));
      return (await database.query<ThreadRecordRow>(text, values))[0];
    },

    /** Deletes those of these threads that have no run in progress; the ids of those. So no run ends. */
    async deleteIdle(
      transaction: Queryable,
      visibility: Visibility<"threads">,
      threadIds: readonly string[],
    ): Promise<string[]> {
      const values: unknown[] = [threadIds];
      const text = deleteIdle(visibility.condition("metadata", values));
      const rows = await transaction.query<{ thread_id: string }>(text, values);
      return rows.map((row) => row.thread_id);
    },

    /**
     * Locks those of these threads that are there, so that they can be deleted with their runs; their ids. In the order of
     * the ids, as `deleteIdle` does.
     */
    async lockForDeletion(
      transaction: Records,
      visibility: Visibility<"threads">,
      threadIds: readonly string[],
    ): Promise<string[]> {
      const rows = await transaction.kysely
        .selectFrom("threads")
        .select("thread_id")
        .where(sql<SqlBool>`thread_id = any(${threadIds}::uuid[])`)
        .where(visibility.where("metadata"))
        .orderBy("thread_id")
        .forUpdate()
        .execute();
      return rows.map((row) => row.thread_id);
    },

    /**
     * Locks a thread for pruning; false if it isn't there or has a run in progress. A new run and an update of the state
     * wait until the transaction is over; an update that had read before finds the thread changed.
     *
     * Until the next change of its state there is nothing to prune, so `expires_at` is cleared. `updated_at` stays: a
     * user has changed nothing.
     */
    async lockForPrune(
      transaction: Records,
      visibility: Visibility<"threads">,
      threadId: string,
    ): Promise<boolean> {
      const row = await transaction.kysely
        .updateTable("threads")
        .set({
          expires_at: sql<Date | null>`case ttl_strategy when 'keep_latest' then null else expires_at end`,
          version: sql<string>`version + 1`,
        })
        .where("thread_id", "=", threadId)
        .where("unfinished_runs", "=", 0)
        .where(visibility.where("metadata"))
        .returning("thread_id")
        .executeTakeFirst();
      return row !== undefined;
    },

    /** A new thread with the record of another; undefined if `readable` hides that one or it is not there. */
    async insertCopy(
      transaction: Queryable,
      readable: Visibility<"threads">,
      _creatable: Visibility<"threads">,
      threadId: string,
    ): Promise<(ThreadRecordRow & { was_busy: boolean }) | undefined> {
      const values: unknown[] = [threadId, newId()];
      const text = insertCopy(readable.condition("metadata", values));
      return (await transaction.query<ThreadRecordRow & { was_busy: boolean }>(text, values))[0];
    },

    /** Writes what an update of the state has changed; leaves a thread alone whose run decides that at its end. */
    async recordOutcome(
      visibility: Visibility<"threads">,
      threadId: string,
      { status, interrupts }: StateOutcome,
    ): Promise<void> {
      await kysely
        .updateTable("threads")
        .set({
          status,
          interrupts: toJsonb(interrupts).jsonb,
          error: null,
          version: sql<string>`version + 1`,
          updated_at: sql<Date>`now()`,
          state_updated_at: sql<Date>`now()`,
          expires_at: sql<Date | null>`now() + ttl_minutes * interval '1 minute'`,
        })
        .where("thread_id", "=", threadId)
        .where("unfinished_runs", "=", 0)
        .where(visibility.where("metadata"))
        .execute();
    },

    /** Throws `threadBusy` if a run is pending or running. For early refusal: the saver's put decides. */
    assertIdle(threadId: string, standing: ThreadStanding): void {
      if (standing.busy) throw threadBusy(threadId);
    },
  };
};

export type ThreadRepository = ReturnType<typeof createThreadRepository>;
