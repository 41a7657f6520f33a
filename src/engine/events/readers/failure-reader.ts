import type { RunEvent } from "../log.ts";
import type { RunReader } from "./channel-reader.ts";

/**
 * Adds the `error` event of a failed run if the reader did not deliver one: a clean end alone would look like
 * success.
 */
export const withFailure = (reader: RunReader, failureOf: () => Promise<RunEvent | undefined>): RunReader => {
  let published = false;
  let closed = false;
  return {
    async next() {
      const events = published ? "ended" : await reader.next();
      if (Array.isArray(events)) published = events.some(({ event }) => event === "error");
      if (events !== "ended" || published || closed) return events;
      published = true;
      const failure = await failureOf();
      return failure === undefined ? "ended" : [failure];
    },
    close() {
      closed = true;
      reader.close();
    },
  };
};
