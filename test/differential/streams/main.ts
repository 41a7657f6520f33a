/**
 * `npm run test:streams [-- --count 1000 --seed N --workers N]`: compares streams of drawn graphs through the API with those of LangGraph
 * alone. At the first difference it prints the seed and a minimal case, and exits with 1. 1,000 streams take about two minutes.
 */
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startTestServer } from "../../../src/server/embedding/testing.ts";
import { checkStreams } from "./check.ts";

const CASES_AT_A_TIME = 50;

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "1000" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    workers: { type: "string", default: "0" },
  },
});

const say = (text: string): void => void process.stdout.write(`${text}\n`);

const server = await startTestServer({
  config: fileURLToPath(new URL("./langgraph.json", import.meta.url)),
  logLevel: "silent",
  workers: Number(values.workers),
  environment: {
    RATE_LIMIT_RUNS: "0",
    RATE_LIMIT_REQUESTS: "0",
  },
});
try {
  const begun = performance.now();
  let [streams, events] = [0, 0];
  for (let seed = Number(values.seed); streams < Number(values.count); seed += 1) {
    const checked = await checkStreams(server.url, seed, CASES_AT_A_TIME);
    if (checked.difference !== undefined) {
      say(checked.difference);
      process.exitCode = 1;
      break;
    }
    streams += checked.streams;
    events += checked.events;
    const seconds = ((performance.now() - begun) / 1_000).toFixed(1);
    say(`${streams} streams with ${events} events are the same (seed ${seed}, ${seconds} s)`);
  }
} finally {
  await server.close();
}
