import { monitorEventLoopDelay } from "node:perf_hooks";

export interface LoopDelay {
  p50: number;
  p99: number;
  max: number;
}

const SAMPLE_MS = 10;
const PERIOD_MS = 10_000;
const NANOSECONDS = 1e9;

/** By how much timers of this process are late, in seconds. */
export const watchLoopDelay = (periodMs = PERIOD_MS) => {
  const histogram = monitorEventLoopDelay({ resolution: SAMPLE_MS });
  histogram.enable();
  /** The histogram records the whole time between two samples, including the interval. */
  const seconds = (nanoseconds: number): number =>
    Math.max(0, nanoseconds / NANOSECONDS - SAMPLE_MS / 1_000) || 0;
  let former: LoopDelay = { p50: 0, p99: 0, max: 0 };
  let begunAt = performance.now();

  return {
    /**
     * The worse of this period and the last; a period lasts ten seconds or until the next read. A blocked loop answers a
     * scrape too late, so the next scrape must still show the block.
     */
    read(): LoopDelay {
      const current = {
        p50: seconds(histogram.percentile(50)),
        p99: seconds(histogram.percentile(99)),
        max: seconds(histogram.max),
      };
      const worse = {
        p50: Math.max(former.p50, current.p50),
        p99: Math.max(former.p99, current.p99),
        max: Math.max(former.max, current.max),
      };
      if (performance.now() - begunAt < periodMs) return worse;
      former = current;
      begunAt = performance.now();
      histogram.reset();
      return worse;
    },
    close: (): void => void histogram.disable(),
  };
};
