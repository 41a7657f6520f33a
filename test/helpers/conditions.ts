import { setTimeout as pause } from "node:timers/promises";

const POLL_EVERY_MS = 10;
/** Nothing that comes takes this long, however busy the machine is: only what never comes. */
const PATIENCE_MS = 120_000;
/** For `vi.waitFor` and `vi.waitUntil`, which give up after a second otherwise. */
export const PATIENTLY = { timeout: PATIENCE_MS };

/**
 * Waits until `look` finds something (anything but undefined and false) and answers it; after `withinMs` it throws
 * an error that says what was waited for.
 */
export const eventually = async <T>(
  what: string,
  look: () => Promise<T | undefined | false> | T | undefined | false,
  withinMs = PATIENCE_MS,
): Promise<T> => {
  const end = performance.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > end) throw new Error(`Waited ${withinMs} ms in vain: ${what}.`);
    await pause(POLL_EVERY_MS);
  }
};

/** How many milliseconds this took. */
export const millisecondsOf = async (attempt: () => Promise<unknown>): Promise<number> => {
  const begin = performance.now();
  await attempt();
  return performance.now() - begin;
};

/**
 * The least that `measure` answers in several tries, none after one that is below `enoughMs`. It tells what waits for a
 * clock, which is never quicker, from what only found the machine busy.
 */
export const leastOf = async (
  enoughMs: number,
  measure: () => Promise<number>,
  tries = 10,
): Promise<number> => {
  let least = Infinity;
  for (let count = 0; count < tries && least >= enoughMs; count += 1)
    least = Math.min(least, await measure());
  return least;
};
