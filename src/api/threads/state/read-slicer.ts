import { createTimeSlicer, type TimeSlicer } from "../../../platform/lib/time-slicer.ts";

/** Delays others no more than an ordinary request. */
const SLICE_MS = 10;
/**
 * Reading a large state takes 20 to 40 ms in one piece. Another request needs fifteen turns of the loop, 3 ms: a pause
 * of that length lets it finish after one or two pieces. With pauses of one turn it took 1.9 s (p99) beside eight
 * histories.
 */
const REST_SHARE = 0.3;
const REST_AT_LEAST_MS = 3;

export const createReadSlicer = (): TimeSlicer =>
  createTimeSlicer(SLICE_MS, (workedMs) => Math.max(REST_AT_LEAST_MS, workedMs * REST_SHARE));
