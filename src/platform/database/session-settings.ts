import { sqlState } from "../domain/errors.ts";
import { BOUNDED_READ_MS } from "./bounded-reads.ts";
import { isPassing } from "./passing-faults.ts";
import { withProbe } from "./probe.ts";

/**
 * JIT compilation takes 0.2 s or more for a costly plan. With statistics of a small or empty table the planner scans
 * whole tables. A generic plan from the first execution saves five plans per statement and connection.
 */
const SETTINGS =
  "-c jit=off -c enable_seqscan=off -c enable_bitmapscan=off -c plan_cache_mode=force_generic_plan";
/** The limits are those of bounded-reads.ts. */
const SEARCH_SETTINGS = `-c jit=off -c statement_timeout=${BOUNDED_READ_MS} -c default_transaction_read_only=on`;
const PLANNED_FOR_VALUES = "-c plan_cache_mode=force_custom_plan";
const PLANNED_ONCE = "-c enable_seqscan=off -c plan_cache_mode=force_generic_plan";
/** GIN indexes of metadata need bitmap scans. Without them PostgreSQL walks the whole table. */
export const READ_BY_ANY_PLAN =
  "begin read only; set local enable_seqscan = on; set local enable_bitmapscan = on; set local plan_cache_mode = auto";
/** PgBouncer's error for an unknown option. */
const PROTOCOL_VIOLATION = "08P01";

const withOptions = (connectionString: string, options: string): string => {
  const url = new URL(connectionString);
  const given = url.searchParams.get("options");
  url.searchParams.set("options", given === null ? options : `${given} ${options}`);
  return url.href;
};

/**
 * Returns the address unchanged if a pooler refuses settings, or ignores them. Throws errors of `pg` if the database is
 * unreachable.
 */
export const withSessionSettings = async (connectionString: string): Promise<string> => {
  // Such as a socket's folder.
  if (!URL.canParse(connectionString)) return connectionString;
  const address = withOptions(connectionString, SETTINGS);
  try {
    return await withProbe(address, async (client) => {
      const { rows } = await client.query<{ enable_seqscan: string }>("show enable_seqscan");
      return rows[0]?.enable_seqscan === "off" ? address : connectionString;
    });
  } catch (error) {
    if (isPassing(error) && sqlState(error) !== PROTOCOL_VIOLATION) throw error;
    return connectionString;
  }
};

/** Addresses of connections that only search. */
export interface SearchAddresses {
  /** Any plan, for the values of each search. */
  plannedForValues: string;
  /** One plan for all values, without a scan of a whole table. */
  plannedOnce: string;
}

/** Undefined if sessions do not keep settings. */
export const searchAddressesOf = (
  connectionString: string,
  withSettings: string,
  { direct }: { direct: boolean },
): SearchAddresses | undefined => {
  if (!direct || withSettings === connectionString) return undefined;
  const address = withOptions(connectionString, SEARCH_SETTINGS);
  return {
    plannedForValues: withOptions(address, PLANNED_FOR_VALUES),
    plannedOnce: withOptions(address, PLANNED_ONCE),
  };
};
