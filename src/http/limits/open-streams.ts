import { tooMany } from "../../platform/domain/errors.ts";
import type { CountedCaller } from "./counted-callers.ts";

/** Counts streams, WebSockets, their subscriptions, and requests that wait for a run. */
export interface OpenStreams {
  readonly active: number;
  /** Returns a function that ends the stream and may be called repeatedly. Throws `tooMany`. */
  open(caller: CountedCaller | undefined): () => void;
}

/** A guess: most streams end within seconds. */
const RETRY_SECONDS = 5;

/** `perCaller`: for a caller with `times` 1; 0 means no limit. `inAll`: for this process. */
export const createOpenStreams = ({
  perCaller,
  inAll,
}: {
  perCaller: number;
  inAll: number;
}): OpenStreams => {
  let active = 0;
  /** Holds only callers with open streams. */
  const byCaller = new Map<string, number>();

  return {
    get active() {
      return active;
    },

    open(caller) {
      if (active >= inAll) {
        throw tooMany("This server has as many streams and waiting requests open as it can.", RETRY_SECONDS);
      }
      const name = perCaller === 0 ? undefined : caller?.name;
      if (caller !== undefined && name !== undefined) {
        const mine = byCaller.get(name) ?? 0;
        const atMost = perCaller * caller.times;
        if (mine >= atMost) {
          throw tooMany(
            `At most ${atMost} streams, WebSockets and waiting requests of one caller are open at once; close one first.`,
            RETRY_SECONDS,
          );
        }
        byCaller.set(name, mine + 1);
      }
      active += 1;
      let isOpen = true;
      return () => {
        if (!isOpen) return;
        isOpen = false;
        active -= 1;
        if (name === undefined) return;
        const others = (byCaller.get(name) ?? 1) - 1;
        if (others === 0) byCaller.delete(name);
        else byCaller.set(name, others);
      };
    },
  };
};
