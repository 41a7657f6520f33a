import type { RunEvent } from "../log.ts";
import type { RunChannel } from "../channel.ts";
import type { Wire } from "../wires.ts";

/** A reader's view of one run. */
export interface RunReader {
  /**
   * The next events, at least one; `"ended"` after the last one; `"lost"` if the reader can't go on here: it fell so
   * far behind that events it has not seen are gone, or they can't be read. Its connection is to be dropped, so that
   * the client resumes or gives up.
   */
  next(): Promise<RunEvent[] | "ended" | "lost">;
  /** Ends the reading; a pending `next` answers `"ended"`. */
  close(): void;
}

export interface ChannelReaderOptions {
  channel: RunChannel;
  /** Id of the last event the reader has. */
  after: number;
  /** Begin with the run's `metadata` though it is not after that id: a stream that is joined in the middle. */
  withOpening: boolean;
  wire: Wire;
  /** Whether the channel was closed because its run has ended, not because this process stops. */
  hasEnded: () => boolean;
}

/** Reads a run that is executed in this process. */
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
