import { createTimeSlicer, type TimeSlicer } from "../../../platform/lib/time-slicer.ts";

/** A slice of this length delays others no more than an ordinary request does. */
const SLICE_MS = 10;
/**
 * Reading a state of some megabytes takes 20 to 40 ms in one piece. Another request needs some fifteen turns of the
 * loop, 3 ms in all, so a pause of that length lets it finish after one or two pieces. With one turn of the loop as the
 * pause, it took 1.9 s (p99) beside eight histories.
 */
const REST_SHARE = 0.3;
const REST_AT_LEAST_MS = 3;

/** Shared by all reads of many states: long answers and searches by values. */
export const createReadSlicer = (): TimeSlicer =>
  createTimeSlicer({
    sliceMs: SLICE_MS,
    restMs: (workedMs) => Math.max(REST_AT_LEAST_MS, workedMs * REST_SHARE),
  });
