import { hrtime } from "node:process";

/** Parallel requests, wherever there are several. */
export const WIDTH = 16;
/** The label of that measurement; the charts look for it. */
export const RUNS_PER_SECOND = `${WIDTH} at a time`;

/** Milliseconds of the machine's monotonic clock; graphs in other processes read the same one. */
export const now = (): number => Number(hrtime.bigint()) / 1e6;

export const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds));

export const percentile = (values: readonly number[], share: number): number => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
};

export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return sorted.length % 2 === 1
    ? sorted[Math.floor(middle)]!
    : ((sorted[middle - 1] ?? NaN) + (sorted[middle] ?? NaN)) / 2;
};

export interface LoadResult {
  elapsedMs: number;
  /** Milliseconds of each piece of work, in order of completion. */
  latencies: number[];
  perSecond: number;
}

/** Does `count` pieces of work, `width` in parallel. Rejects with the first error, after all started work has ended. */
export const run = async (
  width: number,
  count: number,
  work: (index: number) => Promise<unknown>,
): Promise<LoadResult> => {
  const latencies: number[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) {
      const index = next;
      next += 1;
      const started = now();
      try {
        await work(index);
      } catch (error) {
        next = count;
        throw error;
      }
      latencies.push(now() - started);
    }
  };
  const started = now();
  const lanes = await Promise.allSettled(Array.from({ length: Math.min(width, count) }, lane));
  const elapsedMs = now() - started;
  for (const settled of lanes) if (settled.status === "rejected") throw settled.reason;
  return { elapsedMs, latencies, perSecond: (count / elapsedMs) * 1000 };
};
