import type { Queryable } from "../../../platform/database/database.ts";

/**
 * 0.3 ms for 1,000 runs, 5 to 10 ms for 20,000 (the table changes too fast for index-only scans). Index:
 * runs_pending_of_caller.
 */
const PENDING_OF_CALLERS = `select given.caller, (select count(*)::integer from (
    select from threadloom.runs r where r.caller = given.caller and r.status = 'pending' limit given.at_most) as counted) as pending
  from unnest($1::text[], $2::integer[]) as given(caller, at_most)`;

/** Index: runs_pending_of_thread. */
const PENDING_OF_THREAD = `select count(*)::integer as pending from (
  select from threadloom.runs r where r.thread_id = $1 and r.status = 'pending' limit $2) as counted`;

/** Counts up to `atMost`, on all servers. */
export const pendingOfCallers = async (
  queryable: Queryable,
  callers: readonly { caller: string; atMost: number }[],
): Promise<Map<string, number>> => {
  if (callers.length === 0) return new Map();
  const rows = await queryable.query<{ caller: string; pending: number }>(PENDING_OF_CALLERS, [
    callers.map(({ caller }) => caller),
    callers.map(({ atMost }) => atMost),
  ]);
  return new Map(rows.map(({ caller, pending }) => [caller, pending]));
};

export const pendingOfThread = async (
  queryable: Queryable,
  threadId: string,
  atMost: number,
): Promise<number> =>
  (await queryable.query<{ pending: number }>(PENDING_OF_THREAD, [threadId, atMost]))[0]?.pending ?? 0;
