import { createTimeSlicer, type TimeSlicer } from "../../../platform/lib/time-slicer.ts";

/** Delays other requests no more than an ordinary request does. */
const SLICE_MS = 10;
/**
 * A large state takes 20 to 40 ms in one piece, and another request needs 3 ms (fifteen turns of the loop). With pauses
 * of one turn, a request took 1.9 s (p99) beside eight histories.
 */
const REST_SHARE = 0.3;
const REST_AT_LEAST_MS = 3;

export const createReadSlicer = (): TimeSlicer =>
  createTimeSlicer(SLICE_MS, (workedMs) => Math.max(REST_AT_LEAST_MS, workedMs * REST_SHARE));
