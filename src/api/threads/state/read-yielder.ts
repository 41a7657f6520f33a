import { createYielder, type Yielder } from "../../../platform/lib/yielder.ts";

/** Work of this length delays others no more than an ordinary request does. */
const SLICE_MS = 10;
/**
 * A state of some megabytes is read in one piece, 20 to 40 ms long. A request that comes meanwhile needs some fifteen
 * turns of the loop, 3 ms in all: with a rest of that length it waits for one or two such pieces. With a turn of the
 * loop between two pieces, as first built, it waited for one at each of its turns: 1.9 s (p99) beside eight histories.
 */
const REST_SHARE = 0.3;
const REST_AT_LEAST_MS = 3;

/** The pace of everything that reads much of what threads hold: long answers, and searches by values. */
export const createReadYielder = (): Yielder =>
  createYielder({
    sliceMs: SLICE_MS,
    restMs: (workedMs) => Math.max(REST_AT_LEAST_MS, workedMs * REST_SHARE),
  });
