import type { Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";

/**
 * 0.3 ms for 1,000 runs, 5 to 10 ms for 20,000 (the table changes too fast for index-only scans). Index:
 * runs_pending_of_caller.
 */
const PENDING_OF_CALLERS = statement(
  { callers: "text[]", limits: "integer[]" },
  (sql) => `select given.caller, (select count(*)::integer from (
    select from threadloom.runs r where r.caller = given.caller and r.status = 'pending' limit given.at_most) as counted) as pending
  from unnest(${sql.callers}, ${sql.limits}) as given(caller, at_most)`,
);

/** Index: runs_pending_of_thread. */
const PENDING_OF_THREAD = statement(
  { threadId: "uuid", atMost: "bigint" },
  (sql) => `select count(*)::integer as pending from (
  select from threadloom.runs r where r.thread_id = ${sql.threadId} and r.status = 'pending' limit ${sql.atMost}) as counted`,
);

/** Counts up to `atMost`, on all servers. */
export const pendingOfCallers = async (
  queryable: Queryable,
  callers: readonly { caller: string; atMost: number }[],
): Promise<Map<string, number>> => {
  if (callers.length === 0) return new Map();
  const rows = await PENDING_OF_CALLERS.query<{ caller: string; pending: number }>(queryable, {
    callers: callers.map(({ caller }) => caller),
    limits: callers.map(({ atMost }) => atMost),
  });
  return new Map(rows.map(({ caller, pending }) => [caller, pending]));
};

export const pendingOfThread = async (
  queryable: Queryable,
  threadId: string,
  atMost: number,
): Promise<number> =>
  (await PENDING_OF_THREAD.query<{ pending: number }>(queryable, { threadId, atMost }))[0]?.pending ?? 0;
