import type { Visibility } from "../../../access/visibility.ts";
import type { Queryable } from "../../../platform/database/database.ts";

/** What creating and finishing a run conflicts with. Index: threads_pkey. */
const LOCK_THREAD = "select 1 from threadloom.threads where thread_id = $1 for no key update";
/** What deleting the thread takes: those who merely refer to its row have to wait, too. */
const LOCK_THREAD_FOR_DELETION = "select 1 from threadloom.threads where thread_id = $1 for update";
const lockThoseOf = (visible: string): string =>
  `select thread_id from threadloom.threads where thread_id = any($1::uuid[]) and ${visible}
   order by thread_id for no key update`;
const lockFreeOnesOf = (visible: string): string =>
  `select thread_id, unfinished_runs = 0 as is_idle, unfinished_runs - (select count(*)::integer from threadloom.runs x
     where x.thread_id = threads.thread_id and x.status = 'running') as pending
   from threadloom.threads where thread_id = any($1::uuid[]) and ${visible}
   order by thread_id for no key update skip locked`;

/** Locks the thread against every other change of its runs; false if there is none. */
export const lockThread = async (
  transaction: Queryable,
  threadId: string,
  { forDeletion = false }: { forDeletion?: boolean } = {},
): Promise<boolean> =>
  (await transaction.query(forDeletion ? LOCK_THREAD_FOR_DELETION : LOCK_THREAD, [threadId])).length > 0;

/**
 * Locks those of these threads that are there and visible, in the order of their ids: two callers can't wait for each
 * other.
 */
export const lockThreads = async (
  transaction: Queryable,
  visibility: Visibility<"threads">,
  threadIds: readonly string[],
): Promise<Set<string>> => {
  if (threadIds.length === 0) return new Set();
  const values: unknown[] = [threadIds];
  const visible = visibility.condition("metadata", values);
  const rows = await transaction.query<{ thread_id: string }>(lockThoseOf(visible), values);
  return new Set(rows.map((row) => row.thread_id));
};

/** `pending`: how many runs of it wait. */
export interface LockedThread {
  isIdle: boolean;
  pending: number;
}

/** The same, without those that somebody else has locked: never waits. Answers what each is like that is locked now. */
export const lockFreeThreads = async (
  transaction: Queryable,
  visibility: Visibility<"threads">,
  threadIds: readonly string[],
): Promise<Map<string, LockedThread>> => {
  if (threadIds.length === 0) return new Map();
  const values: unknown[] = [threadIds];
  const visible = visibility.condition("metadata", values);
  const rows = await transaction.query<{ thread_id: string; is_idle: boolean; pending: number }>(
    lockFreeOnesOf(visible),
    values,
  );
  return new Map(rows.map((row) => [row.thread_id, { isIdle: row.is_idle, pending: row.pending }]));
};
