import type { Logger } from "../lib/logger.ts";
import type { Queryable } from "./database.ts";

/** More than the way to a database takes, and than clocks differ that are kept by NTP. */
export const CLOCKS_DIFFER_MS = 1_000;

/** By how many milliseconds the clock of this machine is ahead of the database's; less than 0: behind it. Without what the way took. */
export const clockAhead = async (queryable: Pick<Queryable, "query">): Promise<number> => {
  const asked = Date.now();
  const [row] = await queryable.query<{ now: Date }>("select clock_timestamp() as now");
  const answered = Date.now();
  // Somewhere between.
  const ahead = (asked + answered) / 2 - (row?.now.getTime() ?? asked);
  return Math.sign(ahead) * Math.max(0, Math.abs(ahead) - (answered - asked) / 2);
};

/** Says in the log if the clock of this machine is wrong, or the database's. */
export const logClockDifference = async (
  queryable: Pick<Queryable, "query">,
  logger: Logger,
): Promise<void> => {
  const ahead = await clockAhead(queryable);
  if (Math.abs(ahead) <= CLOCKS_DIFFER_MS) return;
  logger.warn(
    { seconds: Math.round(ahead / 100) / 10 },
    "the clock of this machine is not the database's: set both by NTP, else lists and times are out of order",
  );
};
