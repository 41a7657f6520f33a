/** Long enough for a receiver to restart. */
const FIRST_SECONDS = 10;
/** Short enough for an operator who repairs a receiver. */
const LONGEST_SECONDS = 4 * 3_600;
/**
 * After a replay; the column `give_up_at` has the same default. Covers an outage from Friday evening to
 * Monday morning.
 */
export const GIVE_UP_DAYS = 3;

/**
 * Doubles with each failure, less a random part of up to half, so that deliveries that failed together spread
 * out. About 25 tries in three days. `asked`: the receiver's `Retry-After`, in seconds.
 */
export const pauseSeconds = (failures: number, asked = 0, random = Math.random()): number => {
  const usual = Math.min(FIRST_SECONDS * 2 ** Math.max(0, failures - 1), LONGEST_SECONDS);
  return Math.max(usual * (1 - random / 2), Math.min(asked, LONGEST_SECONDS));
};
