import type { Queryable } from "../../platform/database/database.ts";
import { THREAD_JSON } from "../../platform/encryption/columns.ts";
import { toJsonb } from "../../platform/lib/jsonb.ts";
import type { JsonObject } from "../../platform/lib/json.ts";

/** The record of a thread that comes from another server. */
export interface ImportedThread {
  threadId: string;
  status: "idle" | "interrupted";
  metadata: JsonObject;
  /** JSON text of `{task_id: [{id, value}]}`. */
  interrupts: string;
  /** ISO 8601 of the first and of the last checkpoint; null: now. */
  firstTime: string | null;
  lastTime: string | null;
}

// The times are those of the conversation, so that lists of threads stay in their order. A thread whose times are all
// the same would count as one that nothing has touched yet, hence the millisecond.
const STORE = `
  with times as (
    select coalesce($5::timestamptz, now()) as first,
      greatest($6::timestamptz, coalesce($5::timestamptz, now()) + interval '1 millisecond') as last)
  insert into threadloom.threads (thread_id, status, metadata, interrupts, created_at, updated_at, state_updated_at)
  select $1, $2, $3::jsonb, $4::jsonb, first, last, last from times
  on conflict (thread_id) do update set status = excluded.status, interrupts = excluded.interrupts,
    metadata = threads.metadata || excluded.metadata, updated_at = excluded.updated_at,
    state_updated_at = excluded.state_updated_at, version = threads.version + 1
  where threads.unfinished_runs = 0`;

const MERGE = `update threadloom.threads set metadata = metadata || $2::jsonb, version = version + 1
  where thread_id = $1 and unfinished_runs = 0`;

/** Makes the thread, or brings the one that is there up to date; not while a run is on it. */
export const storeImported = async (queryable: Queryable, thread: ImportedThread): Promise<void> => {
  const { cipher } = queryable;
  const key = { thread_id: thread.threadId };
  await queryable.query(STORE, [
    thread.threadId,
    thread.status,
    toJsonb(THREAD_JSON.metadata.stored(cipher, thread.metadata, key)).jsonb,
    THREAD_JSON.interrupts.stored(cipher, thread.interrupts, key),
    thread.firstTime,
    thread.lastTime,
  ]);
};

/** Merges metadata into those of a thread that is there; not while a run is on it. */
export const mergeImported = async (
  queryable: Queryable,
  threadId: string,
  metadata: JsonObject,
): Promise<void> => {
  const stored = THREAD_JSON.metadata.stored(queryable.cipher, metadata, { thread_id: threadId });
  await queryable.query(MERGE, [threadId, toJsonb(stored).jsonb]);
};
