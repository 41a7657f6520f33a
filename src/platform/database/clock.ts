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
