import type { RunEvent } from "../log.ts";
import type { RunChannel } from "../channel.ts";
import type { Wire } from "../wires.ts";

export interface RunReader {
  /** `"lost"`: events were dropped or can't be read. Drop the connection, so that the client resumes. */
  next(): Promise<RunEvent[] | "ended" | "lost">;
  /** A pending `next` resolves to `"ended"`. */
  close(): void;
}

export interface ChannelReaderOptions {
  channel: RunChannel;
  after: number;
  /** Begin with the run's `metadata` even if `after` is later. */
  withOpening: boolean;
  wire: Wire;
  /** False if the channel was closed because this process stops. */
  hasEnded: () => boolean;
}

export const readChannel = ({
  channel,
  after: from,
  withOpening,
  wire,
  hasEnded,
}: ChannelReaderOptions): RunReader => {
  let after = from;
  let done = false;
  let opening =
    withOpening && channel.opening !== undefined && channel.opening.seq <= from ? channel.opening : undefined;
  let wake: (() => void) | undefined;
  const detach = channel.attach(() => wake?.());
  return {
    async next() {
      for (;;) {
        if (done) return "ended";
        if (opening !== undefined) {
          const first = [opening];
          opening = undefined;
          return first;
        }
        const events = channel.read(after);
        if (events === undefined) return "lost";
        // Clients read the run's status at its error, so the end is stored first.
        if (events.at(-1)?.event === "error" && !hasEnded()) events.pop();
        const last = events.at(-1);
        if (last !== undefined) {
          after = last.seq;
          const seen = channel.seenOver(events, wire);
          if (seen.length > 0) return seen;
          continue;
        }
        if (hasEnded()) return "ended";
        if (channel.closed) return "lost";
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        wake = undefined;
      }
    },
    close() {
      done = true;
      detach();
      wake?.();
    },
  };
};

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
