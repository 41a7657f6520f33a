import type { RunEvent } from "../log.ts";
import type { RunReader } from "./channel-reader.ts";

/** The error of an attempt that lost its run may be in the log before the events of the next attempt. */
const withoutErrors = (events: RunEvent[]): RunEvent[] => events.filter(({ event }) => event !== "error");

const hasError = (events: RunEvent[]): boolean => {
  for (const { event } of events) if (event === "error") return true;
  return false;
};

/**
 * Delivers a run's `error` event once the run's end is committed: clients then read the run's status. `failureOf` gives
 * the event if the reader had none, because a clean end alone would look like success.
 */
export const withFailure = (
  reader: RunReader,
  failureOf?: () => Promise<RunEvent | undefined>,
): RunReader => {
  let held: RunEvent | undefined;
  let isDelivered = false;
  let isClosed = false;
  return {
    async next() {
      for (;;) {
        const events = isDelivered ? "ended" : await reader.next();
        if (events === "lost") return events;
        if (events === "ended") {
          if (isDelivered || isClosed) return events;
          isDelivered = true;
          const failure = held ?? (await failureOf?.());
          return failure === undefined ? events : [failure];
        }
        if (held === undefined && !hasError(events)) return events;
        const last = events.at(-1);
        held = last?.event === "error" ? last : undefined;
        const others = withoutErrors(events);
        if (others.length > 0) return others;
      }
    },
    close() {
      isClosed = true;
      reader.close();
    },
  };
};
