import { sql, type RawBuilder, type SqlBool } from "kysely";

/**
 * A run's id has the process's time, `created_at` the database's. The clocks differ, and the database may be away in
 * between.
 */
const CLOCKS_DIFFER_AT_MOST_MS = 600_000;

/** The smallest or largest UUIDv7 of a time. */
const idAt = (time: number, rest: "0" | "f"): string => {
  const hex = Math.max(0, time).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-${rest.repeat(4)}-${rest.repeat(4)}-${rest.repeat(12)}`;
};

/** For runs as `r`. Whole milliseconds, as in answers, so that a shown time includes its run. Index: runs_pkey. */
export const createdSince = (time: Date): RawBuilder<SqlBool> =>
  sql`r.run_id >= ${idAt(time.getTime() - CLOCKS_DIFFER_AT_MOST_MS, "0")}::uuid
    and r.created_at >= ${time.toISOString()}::timestamptz`;

/** See `createdSince`. */
export const createdBefore = (time: Date): RawBuilder<SqlBool> =>
  sql`r.run_id <= ${idAt(time.getTime() + CLOCKS_DIFFER_AT_MOST_MS, "f")}::uuid
    and r.created_at < ${time.toISOString()}::timestamptz`;
