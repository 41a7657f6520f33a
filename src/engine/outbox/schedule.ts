/** A receiver that restarts is back by then. */
const FIRST_SECONDS = 10;
/** So that who repairs a receiver need not wait for half a day. */
const LONGEST_SECONDS = 4 * 3_600;
/** A receiver that is down from Friday evening to Monday morning still hears of everything. */
export const GIVE_UP_DAYS = 3;

/**
 * For how long to wait after so many failures: twice as long each time, less up to the half of it by chance, so that
 * what failed together does not come back together. Some 25 tries in three days. `asked`: what the receiver asked for
 * (`Retry-After`).
 */
export const pauseSeconds = (failures: number, asked = 0, random = Math.random()): number => {
  const usual = Math.min(FIRST_SECONDS * 2 ** Math.max(0, failures - 1), LONGEST_SECONDS);
  return Math.max(usual * (1 - random / 2), Math.min(asked, LONGEST_SECONDS));
};
