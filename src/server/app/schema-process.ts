/** Answers one request and exits. Uses environment, signals and exit, as serve.ts does. */
import { writeFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { extract } from "../../graphs/source/extract.ts";
import type { ExtractionRequest } from "../../graphs/source/extraction-process.ts";

const WATCH = new URL("./main-process-watch.js", import.meta.url);
const WATCH_LIMITS = { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1 };

// If memory runs out, Linux kills this process before the server.
try {
  writeFileSync("/proc/self/oom_score_adj", "1000");
} catch {
  // Not Linux.
}
// A thread watches for the end of the main process, because TypeScript blocks the event loop.
new Worker(WATCH, {
  workerData: { parent: process.ppid },
  execArgv: [],
  resourceLimits: WATCH_LIMITS,
}).unref();

process.once("message", (request: ExtractionRequest) => {
  process.send?.(extract(request), undefined, {}, () => process.exit(0));
});
