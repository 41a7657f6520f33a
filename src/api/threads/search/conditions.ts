import type { Visibility } from "../../../access/visibility.ts";
import type { Database } from "../../../platform/database/database.ts";
import type { ThreadStatus } from "../../../platform/database/tables.ts";
import { assertSearchable } from "../../../platform/encryption/json.ts";
import type { ThreadFilter } from "../schemas.ts";
import { isBehind, type Place, type RowOrder } from "./order.ts";

/** Filters that the table of threads can answer by itself. */
export type RowFilter = Pick<ThreadFilter, "metadata" | "status"> & Partial<Pick<ThreadFilter, "ids">>;

/** What is searched, and in which order. */
export interface OrderedFilter extends RowFilter, RowOrder {
  /** Only what comes behind this place. */
  behind?: Place | undefined;
}

/**
 * `status` has no index, which every run would have to change. What each of the rarer statuses implies has one:
 * runs_pending_of_thread, runs_one_running_per_thread and threads_by_resting_status.
 */
const HOW_TO_FIND: Partial<Record<ThreadStatus, string>> = {
  busy: `thread_id in (select thread_id from threadloom.runs where status = 'pending'
    union all select thread_id from threadloom.runs where status = 'running')`,
  interrupted: "resting_status = 'interrupted' and resting_status <> 'idle'",
  error: "resting_status = 'error' and resting_status <> 'idle'",
};

/**
 * Parameters stand where the planner sees their values (bounded reads are planned for them): it knows which of them are
 * rare. Behind a sub-select it read all of 200,000 threads for a page of 200 that matched.
 *
 * The text of the statements depends only on which filters there are, how to sort, and which of the four long columns
 * are answered: some thousand variants at most, of which a connection prepares those that are used. Nothing that a
 * client sent becomes part of it. They are raw because they are built of such pieces.
 */
export const conditions = (
  { cipher }: Database,
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
  // Whole filter in one jsonb: containment is answered by threads_by_metadata (gin, jsonb_path_ops).
  if (filter.metadata !== undefined && Object.keys(filter.metadata).length > 0) {
    assertSearchable(cipher, filter.metadata);
    add((parameter) => `metadata @> ${parameter}::jsonb`, JSON.stringify(filter.metadata));
  }
  if (filter.status !== undefined) {
    // As a literal, one of four: statements for several statuses then have the same parameters.
    clauses.push(`status = '${filter.status}'`);
    const found = HOW_TO_FIND[filter.status];
    if (found !== undefined) clauses.push(found);
  }
  if (filter.ids !== undefined) add((parameter) => `thread_id = any(${parameter}::uuid[])`, filter.ids);
  if (!visibility.hidesNothing) clauses.push(visibility.condition("metadata", values));
  // The last one: only one of several statements with the same parameters may have it.
  if (isWithin !== undefined) clauses.push(isWithin(parameterFor));
  return { where: clauses.length === 0 ? "" : `where ${clauses.join(" and ")}`, values };
};

/** The conditions of a search, its place included. */
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
