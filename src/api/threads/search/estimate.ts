import type { BoundedRead } from "../../../platform/database/bounded-reads.ts";

/** Counting costs a look at every thread that matches. A page with more of them has no total, as of runs. */
export const COUNTED_AT_MOST = 10_000;

/**
 * From so many threads on, as PostgreSQL's statistics estimate it, none are counted for a page: counting up to the bound would
 * take five times as long as the page. Estimates are of a sample, hence the distance to the bound.
 */
const MANY = 2 * COUNTED_AT_MOST;

interface Estimate {
  "QUERY PLAN": [{ Plan: { "Node Type": string; "Plan Rows": number } }];
}

/**
 * Whether more threads match than are worth counting. Nothing is read: PostgreSQL plans with its statistics. `where` and
 * `values` are those of `conditions`.
 */
export const matchesMany = async (
  read: BoundedRead,
  { where, values }: { where: string; values: unknown[] },
): Promise<boolean> => {
  const [estimate] = await read<Estimate>(
    `explain (format json) select from threadloom.threads ${where}`,
    values,
  );
  const plan = estimate?.["QUERY PLAN"][0].Plan;
  // Citus puts a node of its own above a distributed table, and expects the same number of rows of all.
  if (plan === undefined || plan["Node Type"] === "Custom Scan") return false;
  return plan["Plan Rows"] > MANY;
};
