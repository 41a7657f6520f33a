import { inspect } from "node:util";
import { createRandom } from "../../abuse/random.ts";
import { compareHistory } from "./compare.ts";
import { aHistory } from "./operations.ts";
import type { Send } from "./server-side.ts";
import { shrink, type Failure } from "./shrink.ts";

export interface SeededFailure extends Failure {
  seed: number;
}

export interface HistoriesOptions {
  send: Send;
  /** Of the first history; the next ones have the next numbers. */
  seed: number;
  count: number;
  /** Histories under way at a time. */
  jobs: number;
  shrinkMs: number;
  failuresAtMost: number;
  signal?: AbortSignal;
  onDone?: (done: number) => void;
  onFailure: (failure: SeededFailure) => void;
}

/** Returns how many histories differ. */
export const runHistories = async (options: HistoriesOptions): Promise<number> => {
  const { send, seed, count, jobs, shrinkMs, failuresAtMost, signal, onDone, onFailure } = options;
  let next = seed;
  let done = 0;
  let failed = 0;
  const work = async (): Promise<void> => {
    while (next < seed + count && failed < failuresAtMost && signal?.aborted !== true) {
      const own = next;
      next += 1;
      const history = aHistory(createRandom(own));
      const difference = await compareHistory(history, send);
      if (difference !== undefined) {
        failed += 1;
        const giveUpAt = Date.now() + shrinkMs;
        const run = (smaller: typeof history) => compareHistory(smaller, send);
        const smallest = await shrink(
          { history, difference },
          run,
          () => signal?.aborted === true || Date.now() > giveUpAt,
        );
        onFailure({ seed: own, ...smallest });
      }
      done += 1;
      onDone?.(done);
    }
  };
  await Promise.all(Array.from({ length: jobs }, work));
  return failed;
};

const shown = (value: unknown): string =>
  inspect(value, { depth: 12, breakLength: 160, maxArrayLength: 12, maxStringLength: 120 });

export const formatFailure = ({ seed, history, difference }: SeededFailure): string =>
  [
    `\nSeed ${seed}, graph ${history.graph}: ${difference.what}${difference.path} differs after operation ${difference.after + 1}`,
    ...(history.supersteps.length === 0
      ? []
      : [`   created with ${JSON.stringify(history.supersteps).slice(0, 2_000)}`]),
    ...history.operations.map(
      (operation, index) => `   ${index + 1}. ${JSON.stringify(operation).slice(0, 2_000)}`,
    ),
    `   LangGraph: ${shown(difference.expected)}`,
    `   server:    ${shown(difference.actual)}`,
  ].join("\n");
