/**
 * `npm run test:streams [-- --count 1000 --seed N --workers N]`: streams of drawn graphs through the API beside those of LangGraph alone.
 * Prints a minimal case of a difference and exits with 1.
 */
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import fc from "fast-check";
import { startTestServer } from "../../../src/server/embedding/testing.ts";
import { streamCase } from "./case.ts";
import { compareStreams } from "./compare.ts";

const CASES_AT_A_TIME = 50;

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "1000" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    workers: { type: "string", default: "0" },
  },
});
const count = Number(values.count);
const firstSeed = Number(values.seed);

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const seconds = (since: number): string => `${((performance.now() - since) / 1_000).toFixed(1)} s`;

const server = await startTestServer({
  config: fileURLToPath(new URL("./langgraph.json", import.meta.url)),
  logLevel: "silent",
  workers: Number(values.workers),
  environment: {
    RUNS_PER_MINUTE: "0",
    READS_PER_MINUTE: "0",
    WRITES_PER_MINUTE: "0",
    STREAMS_PER_MINUTE: "0",
  },
});
try {
  const begun = performance.now();
  let streams = 0;
  let events = 0;
  for (let seed = firstSeed; streams < count; seed += 1) {
    const result = await fc.check(
      fc.asyncProperty(streamCase, async (drawn) => {
        const compared = await compareStreams(server.url, drawn);
        streams += compared.streams;
        events += compared.events;
      }),
      { seed, numRuns: CASES_AT_A_TIME },
    );
    if (result.failed) {
      say(`A stream differs (--seed ${seed}). The minimal case after ${result.numShrinks} simplifications:`);
      say(JSON.stringify(result.counterexample?.[0], undefined, 2));
      say(String((result.errorInstance as Error | null)?.message));
      process.exitCode = 1;
      break;
    }
    say(`${streams} streams, ${events} events are the same after ${seconds(begun)} (seed ${seed})`);
  }
} finally {
  await server.close();
}
