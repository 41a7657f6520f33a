/**
 * A client in a process of its own. Requests `/ok` of the server in its argument every ASK_EVERY_MS until it gets any message; then it
 * sends its OkFigures and ends.
 */
import { Agent, get } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { percentile } from "./bench.ts";

export interface OkFigures {
  asked: number;
  /** Answers other than 200, and requests without an answer. */
  failed: number;
  p50: number;
  p99: number;
  max: number;
}

const ASK_EVERY_MS = 10;
const url = `${process.argv[2] ?? ""}/ok`;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

const ask = (): Promise<boolean> =>
  new Promise((resolve) => {
    get(url, { agent }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode === 200));
    }).on("error", () => resolve(false));
  });

const took: number[] = [];
let failed = 0;
let isOver = false;
process.once("message", () => (isOver = true));
process.once("disconnect", () => process.exit(0));
await ask();
process.send?.("asking");
while (!isOver) {
  const startedAt = performance.now();
  if (!(await ask())) failed += 1;
  took.push(performance.now() - startedAt);
  await pause(ASK_EVERY_MS);
}
const figures: OkFigures = {
  asked: took.length,
  failed,
  p50: percentile(took, 0.5),
  p99: percentile(took, 0.99),
  max: Math.max(...took),
};
process.send?.(figures, () => process.exit(0));
