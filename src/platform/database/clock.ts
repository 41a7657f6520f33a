import type { Logger } from "../lib/logger.ts";
import type { Queryable } from "./database.ts";

/** Longer than a round trip, and than clocks with NTP differ. */
export const CLOCKS_DIFFER_MS = 1_000;

/** Milliseconds, less half a round trip. Negative: this clock is behind. */
export const clockAhead = async (queryable: Pick<Queryable, "query">): Promise<number> => {
  const asked = Date.now();
  const [row] = await queryable.query<{ now: Date }>("select clock_timestamp() as now");
  const answered = Date.now();
  const ahead = (asked + answered) / 2 - (row?.now.getTime() ?? asked);
  return Math.sign(ahead) * Math.max(0, Math.abs(ahead) - (answered - asked) / 2);
};

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
