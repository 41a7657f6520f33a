import { setTimeout as pause } from "node:timers/promises";

const POLL_EVERY_MS = 10;
/** Longer than anything takes on a busy machine: only a condition that never comes true exceeds it. */
const PATIENCE_MS = 120_000;
/** For `vi.waitFor` and `vi.waitUntil`, which otherwise give up after a second. */
export const PATIENTLY = { timeout: PATIENCE_MS };

/**
 * Waits until `look` returns something (anything but undefined and false) and returns it; after `withinMs` it throws an error that names
 * the condition.
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

export const millisecondsOf = async (attempt: () => Promise<unknown>): Promise<number> => {
  const begin = performance.now();
  await attempt();
  return performance.now() - begin;
};

/**
 * The minimum of several measurements; stops after one below `enoughMs`. A wait for a clock is never quick, while a busy machine sometimes
 * is.
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
