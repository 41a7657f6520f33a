/** Compares the streams of drawn cases, and reduces the first case that differs. */
import fc from "fast-check";
import { streamCase } from "./case.ts";
import { compareStreams } from "./compare.ts";

export interface Checked {
  streams: number;
  events: number;
  /** The seed, the minimal case, and where its streams differ. */
  difference?: string;
}

export const checkStreams = async (url: string, seed: number, cases: number): Promise<Checked> => {
  let [streams, events] = [0, 0];
  const result = await fc.check(
    fc.asyncProperty(streamCase, async (drawn) => {
      const compared = await compareStreams(url, drawn);
      streams += compared.streams;
      events += compared.events;
    }),
    { seed, numRuns: cases },
  );
  if (!result.failed) return { streams, events };
  const difference = [
    `Seed ${seed}. The minimal case after ${result.numShrinks} simplifications:`,
    JSON.stringify(result.counterexample?.[0], undefined, 2),
    String(result.errorInstance),
  ].join("\n");
  return { streams, events, difference };
};
