import type { AttemptSelector } from "../queue/attempts.ts";

/** Attempts that fit; 144 KiB. N_JOBS_PER_WORKER goes up to 1,000, and some runs are being concluded beside those. */
export const SLOTS = 4_096;
/** The attempt (0: the slot is free), then the thread's id and the run's, 16 bytes each. */
const INTS_PER_SLOT = 9;
const ID_BYTES = 16;

/**
 * The attempts that this process holds, in memory that the heartbeat's thread reads (in heartbeat-thread-entry.js):
 * telling it by a message for each run cost 30 to 55 µs of CPU per run, this 0.5. The reader may see a slot while it is
 * written: an id that is half another one is no run's, and renewing it changes nothing.
 */
export const createHeldAttempts = () => {
  const memory = new Int32Array(new SharedArrayBuffer(SLOTS * INTS_PER_SLOT * Int32Array.BYTES_PER_ELEMENT));
  const bytes = Buffer.from(memory.buffer);
  const free = Array.from({ length: SLOTS }, (_, index) => (SLOTS - 1 - index) * INTS_PER_SLOT);
  return {
    memory,
    /** The slot it was given, which `remove` takes; undefined if none is free. */
    add({ threadId, runId, attempt }: AttemptSelector): number | undefined {
      const slot = free.pop();
      if (slot === undefined) return undefined;
      const start = (slot + 1) * Int32Array.BYTES_PER_ELEMENT;
      bytes.write((threadId + runId).replaceAll("-", ""), start, 2 * ID_BYTES, "hex");
      Atomics.store(memory, slot, attempt);
      return slot;
    },
    remove(slot: number): void {
      Atomics.store(memory, slot, 0);
      free.push(slot);
    },
  };
};
