/**
 * The process that reads the schemas of graphs from their source: it answers one request and ends. The entry beside this
 * file loads it. It touches the process as serve.ts does.
 */
import { writeFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { extract } from "../../graphs/source/extract.ts";
import type { ExtractionRequest } from "../../graphs/source/extraction.ts";

const WATCH = new URL("./main-process-watch.js", import.meta.url);
const WATCH_LIMITS = { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1 };

// Where memory is short, Linux ends this process and not the server.
try {
  writeFileSync("/proc/self/oom_score_adj", "1000");
} catch {
  // Not Linux.
}
// TypeScript takes every turn of the loop, so the end of the main process is not heard there.
new Worker(WATCH, {
  workerData: { parent: process.ppid },
  execArgv: [],
  resourceLimits: WATCH_LIMITS,
}).unref();

process.once("message", (request: ExtractionRequest) => {
  process.send?.(extract(request), undefined, {}, () => process.exit(0));
});
