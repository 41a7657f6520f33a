import type { Visibility } from "../../../access/visibility.ts";
import type { Database } from "../../../platform/database/database.ts";
import type { ThreadStatus } from "../../../platform/database/tables.ts";
import type { ThreadFilter } from "../schemas.ts";
import { isBehind, type Place, type RowOrder } from "./order.ts";

/** Filters on columns of `threads`. */
export type RowFilter = Pick<ThreadFilter, "metadata" | "status"> & Partial<Pick<ThreadFilter, "ids">>;

export interface OrderedFilter extends RowFilter, RowOrder {
  /** Only threads behind this place. */
  behind?: Place | undefined;
}

/**
 * `status` has no index, since every run would update it. These conditions follow from the status and have one:
 * runs_pending_of_thread, runs_one_running_per_thread, threads_by_resting_status.
 */
const HOW_TO_FIND: Partial<Record<ThreadStatus, string>> = {
  busy: `thread_id in (select thread_id from threadloom.runs where status = 'pending'
    union all select thread_id from threadloom.runs where status = 'running')`,
  interrupted: "resting_status = 'interrupted' and resting_status <> 'idle'",
  error: "resting_status = 'error' and resting_status <> 'idle'",
};

/**
 * Parameters must stand where the planner sees their values: behind a sub-select it read all of 200,000 threads for a
 * page of 200. No text depends on a client's input, so there are at most some thousand variants.
 */
export const conditions = (
  { encryption }: Database,
  visibility: Visibility<"threads">,
  filter: RowFilter,
  isWithin?: (parameter: (value: unknown) => string) => string,
): { where: string; values: unknown[] } => {
  const clauses: string[] = [];
  const values: unknown[] = [];
  const parameterFor = (value: unknown): string => `$${values.push(value)}`;
  const add = (clause: (parameter: string) => string, value: unknown): void => {
    clauses.push(clause(parameterFor(value)));
  };
  // One jsonb for the filter, for threads_by_metadata (gin, jsonb_path_ops).
  if (filter.metadata !== undefined && Object.keys(filter.metadata).length > 0) {
    encryption.assertSearchable(filter.metadata);
    add((parameter) => `metadata @> ${parameter}::jsonb`, JSON.stringify(filter.metadata));
  }
  if (filter.status !== undefined) {
    // A literal, so that statements for several statuses have the same parameters.
    clauses.push(`status = '${filter.status}'`);
    const found = HOW_TO_FIND[filter.status];
    if (found !== undefined) clauses.push(found);
  }
  if (filter.ids !== undefined) add((parameter) => `thread_id = any(${parameter}::uuid[])`, filter.ids);
  if (!visibility.hidesNothing) clauses.push(visibility.condition("metadata", values));
  // Must be last: only one of several statements with the same parameters may have it.
  if (isWithin !== undefined) clauses.push(isWithin(parameterFor));
  return { where: clauses.length === 0 ? "" : `where ${clauses.join(" and ")}`, values };
};

export const conditionsBehind = (
  database: Database,
  visibility: Visibility<"threads">,
  search: OrderedFilter,
) => {
  const { behind } = search;
  return conditions(
    database,
    visibility,
    search,
    behind && ((parameter) => isBehind(search, behind, parameter)),
  );
};
