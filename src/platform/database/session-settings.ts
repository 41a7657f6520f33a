import { sqlState } from "../domain/errors.ts";
import { isPassing } from "./passing-faults.ts";
import { withProbe } from "./probe.ts";

/**
 * JIT compilation takes 0.2 s or more for a costly plan. With statistics of a small or empty table the planner scans
 * whole tables.
 */
const SETTINGS = "-c jit=off -c enable_seqscan=off -c enable_bitmapscan=off";
/** GIN indexes of metadata need bitmap scans. Without them PostgreSQL walks the whole table. */
export const READ_BY_ANY_PLAN =
  "begin read only; set local enable_seqscan = on; set local enable_bitmapscan = on";
/** PgBouncer's error for an unknown option. */
const PROTOCOL_VIOLATION = "08P01";

/** Returns the address unchanged if a pooler refuses settings. Throws errors of `pg` if the database is unreachable. */
export const withSessionSettings = async (connectionString: string): Promise<string> => {
  if (!URL.canParse(connectionString)) return connectionString; // a socket's folder, for example
  const url = new URL(connectionString);
  const given = url.searchParams.get("options");
  url.searchParams.set("options", given === null ? SETTINGS : `${given} ${SETTINGS}`);
  try {
    return await withProbe(url.href, () => url.href);
  } catch (error) {
    if (isPassing(error) && sqlState(error) !== PROTOCOL_VIOLATION) throw error;
    return connectionString;
  }
};
