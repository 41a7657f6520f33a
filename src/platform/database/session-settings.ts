import { sqlState } from "../domain/errors.ts";
import { isPassing } from "./passing-faults.ts";
import { withProbe } from "./probe.ts";

/**
 * Sent in the startup packet. JIT compilation takes 0.2 s or more when the planner expects a costly statement.
 * Statements rely on indexes, but with statistics of a small or empty table the planner scans whole tables.
 */
const SETTINGS = "-c jit=off -c enable_seqscan=off -c enable_bitmapscan=off";
/**
 * Opens a transaction that allows every plan. GIN indexes of metadata need bitmap scans; without these PostgreSQL walks
 * the whole table.
 */
export const READ_BY_ANY_PLAN =
  "begin read only; set local enable_seqscan = on; set local enable_bitmapscan = on";
/** SQLSTATE of PgBouncer for an unknown option. */
const PROTOCOL_VIOLATION = "08P01";

/**
 * The address with settings for its sessions, at no extra statement. Returns the address unchanged if a pooler such as
 * PgBouncer refuses settings. Throws errors of `pg` if the database is unreachable.
 */
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
