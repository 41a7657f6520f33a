import { sqlState } from "../domain/errors.ts";
import { isPassing } from "./passing-faults.ts";
import { withProbe } from "./probe.ts";

/** A setting of the session, in the startup packet. */
const JIT_OFF = "-c jit=off";
/** SQLSTATE: what PgBouncer answers to an option that it does not know. */
const PROTOCOL_VIOLATION = "08P01";

/**
 * The same address, whose sessions do not compile their statements. Statements here are short, and compiling takes 0.2 s
 * or more where the planner expects a costly one. The option is part of the connection and costs no statement.
 *
 * Poolers such as PgBouncer refuse it; then the address is returned as it is. Throws what `pg` throws if the database is
 * away.
 */
export const withoutJit = async (connectionString: string): Promise<string> => {
  if (!URL.canParse(connectionString)) return connectionString; // a socket's folder, for example
  const url = new URL(connectionString);
  const given = url.searchParams.get("options");
  url.searchParams.set("options", given === null ? JIT_OFF : `${given} ${JIT_OFF}`);
  try {
    return await withProbe(url.href, () => url.href);
  } catch (error) {
    if (isPassing(error) && sqlState(error) !== PROTOCOL_VIOLATION) throw error;
    return connectionString;
  }
};
