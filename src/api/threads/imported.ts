import type { Queryable } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";
import { toJsonb } from "../../platform/lib/jsonb.ts";
import type { JsonObject } from "../../platform/lib/json.ts";

export interface ImportedThread {
  threadId: string;
  status: "idle" | "interrupted";
  metadata: JsonObject;
  /** JSON text of `{task_id: [{id, value}]}`. */
  interrupts: string;
  /** ISO 8601, of the first and the last checkpoint; null means now. */
  firstTime: string | null;
  lastTime: string | null;
}

// The conversation's own times keep lists in order. Equal times would mean an untouched thread.
const STORE = statement(
  {
    threadId: "uuid",
    status: "text",
    metadata: "jsonb",
    interrupts: "json",
    firstTime: "timestamptz",
    lastTime: "timestamptz",
  },
  (sql) => `
  with times as (
    select coalesce(${sql.firstTime}, now()) as first,
      greatest(${sql.lastTime}, coalesce(${sql.firstTime}, now()) + interval '1 millisecond') as last)
  insert into threadloom.threads (thread_id, status, metadata, interrupts, created_at, updated_at, state_updated_at)
  select ${sql.threadId}, ${sql.status}, ${sql.metadata}, ${sql.interrupts}, first, last, last from times
  on conflict (thread_id) do update set status = excluded.status, interrupts = excluded.interrupts,
    metadata = threads.metadata || excluded.metadata, updated_at = excluded.updated_at,
    state_updated_at = excluded.state_updated_at, version = threads.version + 1
  where threads.unfinished_runs = 0`,
);

/** Changes nothing while a run is on the thread. */
export const storeImported = async (queryable: Queryable, thread: ImportedThread): Promise<void> => {
  const { encryption } = queryable;
  const key = { thread_id: thread.threadId };
  await STORE.query(queryable, {
    ...thread,
    metadata: toJsonb(encryption.stored("threads", "metadata", thread.metadata, key)).jsonb,
    interrupts: encryption.stored("threads", "interrupts", thread.interrupts, key),
  });
};
