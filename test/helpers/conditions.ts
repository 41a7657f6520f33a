import { setTimeout as pause } from "node:timers/promises";

const LOOK_EVERY_MS = 10;

/**
 * Waits until `look` finds something (anything but undefined and false) and answers it; after `withinMs` it throws
 * an error that says what was waited for.
 */
export const eventually = async <T>(
  what: string,
  look: () => Promise<T | undefined | false> | T | undefined | false,
  withinMs = 15_000,
): Promise<T> => {
  const end = performance.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > end) throw new Error(`Waited ${withinMs} ms in vain: ${what}.`);
    await pause(LOOK_EVERY_MS);
  }
};
