import { sql, type RawBuilder } from "kysely";
import { composedRead } from "../../../platform/database/queries.ts";
import type { BoundedRead } from "../../../platform/database/bounded-reads.ts";

/** A count reads every match, so larger results have no total. */
export const COUNTED_AT_MOST = 10_000;

/**
 * Above this estimate nothing is counted: a count up to the bound takes five times as long as the page. Estimates are
 * inexact, hence the factor.
 */
const MANY = 2 * COUNTED_AT_MOST;

interface Estimate {
  "QUERY PLAN": [{ Plan: { "Plan Rows": number } }];
}

/** Reads only the planner's statistics. */
export const matchesMany = async (read: BoundedRead, where: RawBuilder<unknown>): Promise<boolean> => {
  const [estimate] = await composedRead<Estimate>(
    read,
    sql`explain (format json) select from threadloom.threads ${where}`,
  );
  return estimate !== undefined && estimate["QUERY PLAN"][0].Plan["Plan Rows"] > MANY;
};
