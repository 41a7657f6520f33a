import type { Visibility } from "../../../access/visibility.ts";
import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";

/** Conflicts with creating and finishing a run. Index: threads_pkey. */
const LOCK_THREAD = statement(
  { threadId: "uuid" },
  (sql) => `select 1 from threadloom.threads where thread_id = ${sql.threadId} for no key update`,
);
/** Also blocks inserts of rows that reference the thread. */
const LOCK_THREAD_FOR_DELETION = statement(
  { threadId: "uuid" },
  (sql) => `select 1 from threadloom.threads where thread_id = ${sql.threadId} for update`,
);
const LOCK_THREADS = statement(
  { threadIds: "uuid[]", visible: "fragment" },
  (sql) => `select thread_id from threadloom.threads where thread_id = any(${sql.threadIds}) and
    ${sql.visible}
   order by thread_id for no key update`,
);
const LOCK_FREE_THREADS = statement(
  { threadIds: "uuid[]", visible: "fragment" },
  (sql) => `select thread_id, unfinished_runs = 0 as is_idle, unfinished_runs - (select count(*)::integer
    from threadloom.runs x
     where x.thread_id = threads.thread_id and x.status = 'running') as pending
   from threadloom.threads where thread_id = any(${sql.threadIds}) and ${sql.visible}
   order by thread_id for no key update skip locked`,
);

/** Returns false if there is no such thread. */
export const lockThread = async (
  transaction: Queryable,
  threadId: string,
  { forDeletion = false }: { forDeletion?: boolean } = {},
): Promise<boolean> =>
  (await (forDeletion ? LOCK_THREAD_FOR_DELETION : LOCK_THREAD).query(transaction, { threadId })).length > 0;

/** Locks in the order of ids, to avoid deadlocks. */
export const lockThreads = async (
  transaction: Queryable,
  visibility: Visibility<"threads">,
  threadIds: readonly string[],
): Promise<Set<string>> => {
  if (threadIds.length === 0) return new Set();
  const visible = visibility.on("metadata");
  const rows = await LOCK_THREADS.query<{ thread_id: string }>(transaction, { threadIds, visible });
  return new Set(rows.map((row) => row.thread_id));
};

export interface LockedThread {
  isIdle: boolean;
  pending: number;
}

/** Skips locked threads instead of waiting. */
export const lockFreeThreads = async (
  transaction: Queryable,
  visibility: Visibility<"threads">,
  threadIds: readonly string[],
): Promise<Map<string, LockedThread>> => {
  if (threadIds.length === 0) return new Map();
  const visible = visibility.on("metadata");
  const rows = await LOCK_FREE_THREADS.query<{ thread_id: string; is_idle: boolean; pending: number }>(
    transaction,
    {
      threadIds,
      visible,
    },
  );
  return new Map(rows.map((row) => [row.thread_id, { isIdle: row.is_idle, pending: row.pending }]));
};

const EXISTING = statement(
  { threadIds: "uuid[]" },
  (sql) => `select thread_id from threadloom.threads where thread_id = any(${sql.threadIds})`,
);

/** Those of the threads that exist, locked or not. Index: threads_pkey. */
export const existingThreads = async (
  transaction: Queryable,
  threadIds: readonly string[],
): Promise<ReadonlySet<string>> => {
  if (threadIds.length === 0) return new Set();
  const rows = await EXISTING.query<{ thread_id: string }>(transaction, { threadIds });
  return new Set(rows.map((row) => row.thread_id));
};
