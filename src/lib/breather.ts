import { setImmediate as turn } from "node:timers/promises";

/** Work of this length delays others no more than an ordinary request does. */
const AT_A_STRETCH_MS = 10;

/**
 * For loops over what users have stored: awaited between two rounds, it lets others have their turn every 10 ms, and
 * rejects with the signal's reason when that has aborted.
 */
export const createBreather = (signal?: AbortSignal): (() => Promise<void>) => {
  let since = performance.now();
  return async () => {
    signal?.throwIfAborted();
    if (performance.now() - since < AT_A_STRETCH_MS) return;
    await turn();
    since = performance.now();
    signal?.throwIfAborted();
  };
};
