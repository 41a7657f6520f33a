import { sql, type RawBuilder, type SqlBool } from "kysely";
import { type Visibility, whereVisible } from "../../../access/visibility.ts";
import type { Database } from "../../../platform/database/database.ts";
import type { ThreadStatus } from "../../../platform/database/tables.ts";
import type { ThreadFilter } from "../schemas.ts";
import { isBehind, type Place, type RowOrder } from "./order.ts";

export type RowFilter = Pick<ThreadFilter, "metadata" | "status"> & Partial<Pick<ThreadFilter, "ids">>;

export interface OrderedFilter extends RowFilter, RowOrder {
  /** Only threads behind this place. */
  behind?: Place | undefined;
}

/**
 * `status` has no index, because every run would update it. These conditions follow from the status and have one:
 * runs_pending_of_thread, runs_one_begun_per_thread, threads_by_resting_status.
 */
const HOW_TO_FIND: Partial<Record<ThreadStatus, string>> = {
  busy: `thread_id in (select thread_id from threadloom.runs where status = 'pending'
    union all select thread_id from threadloom.runs where status = 'running')`,
  interrupted: "resting_status = 'interrupted' and resting_status <> 'idle'",
  error: "resting_status = 'error' and resting_status <> 'idle'",
};

/**
 * The planner must see the values of parameters: behind a sub-select it read all of 200,000 threads for a page of 200.
 * No client input becomes SQL text, so there are at most some thousand variants.
 */
export const whereMatches = (
  { encryption }: Database,
  visibility: Visibility<"threads">,
  filter: RowFilter,
  isWithin?: RawBuilder<SqlBool>,
): RawBuilder<unknown> => {
  const conditions: RawBuilder<SqlBool>[] = [];
  // One jsonb for the filter, for threads_by_metadata (gin, jsonb_path_ops).
  if (filter.metadata !== undefined && Object.keys(filter.metadata).length > 0) {
    encryption.assertSearchable(filter.metadata);
    conditions.push(sql`metadata @> ${JSON.stringify(filter.metadata)}::jsonb`);
  }
  if (filter.status !== undefined) {
    conditions.push(sql`status = ${sql.lit(filter.status)}`);
    const found = HOW_TO_FIND[filter.status];
    if (found !== undefined) conditions.push(sql.raw(found));
  }
  if (filter.ids !== undefined) conditions.push(sql`thread_id = any(${filter.ids}::uuid[])`);
  if (!visibility.hidesNothing) conditions.push(whereVisible(visibility, "metadata"));
  if (isWithin !== undefined) conditions.push(isWithin);
  return conditions.length === 0 ? sql`` : sql`where ${sql.join(conditions, sql` and `)}`;
};

export const whereBehind = (
  database: Database,
  visibility: Visibility<"threads">,
  search: OrderedFilter,
): RawBuilder<unknown> =>
  whereMatches(database, visibility, search, search.behind && isBehind(search, search.behind));
