import { sqlState } from "../domain/errors.ts";
import { isPassing } from "./passing-faults.ts";
import { withProbe } from "./probe.ts";

/**
 * In the startup packet. Statements here are short, and compiling takes 0.2 s or more where the planner expects a costly one. They
 * know their indexes, but the planner reads whole tables where its statistics are of a time when these were small or empty.
 */
const SETTINGS = "-c jit=off -c enable_seqscan=off -c enable_bitmapscan=off";
/**
 * Opens a transaction in which statements may be planned in any way: an index of metadata (gin) is read by bitmap scans
 * alone, and without them PostgreSQL walks the whole table in some order.
 */
export const READ_BY_ANY_PLAN =
  "begin read only; set local enable_seqscan = on; set local enable_bitmapscan = on";
/** SQLSTATE: what PgBouncer answers to an option that it does not know. */
const PROTOCOL_VIOLATION = "08P01";

/**
 * The same address, whose sessions compile nothing and plan by indexes. The settings are part of the connection and cost no
 * statement. Searches set their own (bounded-reads.ts).
 *
 * Poolers such as PgBouncer refuse them; then the address is returned as it is. Throws what `pg` throws if the database is
 * away.
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
