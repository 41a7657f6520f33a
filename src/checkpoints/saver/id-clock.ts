/**
 * Which of two checkpoints is the newer one, their ids say (UUIDv6), which LangGraph makes by the clock of its process. Of two
 * servers whose clocks differ, the one that is behind would write a turn that nobody ever sees, since the turn before it looks
 * newer. So whoever goes on from a checkpoint waits until its own clock is past it.
 */
import { setTimeout as delay } from "node:timers/promises";
import { unavailable } from "../../domain/errors.ts";
import type { Logger } from "../../lib/logger.ts";

export interface IdClock {
  /** Resolves when the ids that are made here come after this one. Rejects with `unavailable` if that takes long. */
  pass(checkpointId: string): Promise<void>;
}

/** 100 ns since 1582-10-15, of which a UUIDv6 tells the first 48 bits, then 12 more. */
const TICKS_PER_MS = 10_000;
const EPOCH_MS = 12_219_292_800_000;
const LOW_TICKS = 4_096;

/** Clocks that are kept by NTP differ by some milliseconds. */
const WAIT_MS_AT_MOST = 10_000;
const TOLD_MS = 100;
const TOLD_EVERY_MS = 60_000;

/** Milliseconds since 1970; undefined if the id is no UUIDv6. */
export const timeOfId = (id: string): number | undefined => {
  if (id[14] !== "6") return undefined;
  const high = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
  return (high * LOW_TICKS + Number.parseInt(id.slice(15, 18), 16)) / TICKS_PER_MS - EPOCH_MS;
};

export const createIdClock = (logger: Logger): IdClock => {
  let toldAt = -Infinity;
  const tell = (aheadMs: number): void => {
    if (aheadMs < TOLD_MS || performance.now() - toldAt < TOLD_EVERY_MS) return;
    toldAt = performance.now();
    logger.warn(
      { seconds: Math.round(aheadMs / 100) / 10 },
      "the newest checkpoint of a thread is of a time to come, for which its runs wait: set the clocks of all servers by NTP",
    );
  };
  return {
    async pass(checkpointId) {
      const time = timeOfId(checkpointId);
      if (time === undefined) return;
      // Ids of one millisecond are in order only where one process makes them all.
      const aheadMs = Math.floor(time) + 1 - Date.now();
      if (aheadMs <= 0) return;
      tell(aheadMs);
      if (aheadMs > WAIT_MS_AT_MOST)
        throw unavailable(
          `The newest state of this thread is of a time to come, in ${Math.round(aheadMs / 1_000)} s by the clock of this server; what ` +
            "is done now would be taken for older. Set the clocks of all servers by NTP.",
        );
      // Once: in a test that holds the clock it never gets later. A timer may be a millisecond early.
      await delay(aheadMs + 1);
    },
  };
};
