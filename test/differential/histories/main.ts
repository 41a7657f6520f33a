/**
 * `npm run test:histories -- --count 5000 --seed 1 [--jobs 4] [--shrink seconds]`: random histories of threads on two servers, compared with
 * LangGraph alone. Exits with 1 if something differs. `--seed N --count 1` repeats the history of a seed.
 */
import { parseArgs } from "node:util";
import { pino } from "pino";
import { startEmbeddedPostgres } from "../../../src/platform/database/embedded/embedded.ts";
import { removeLeftovers, temporaryFolder } from "../../helpers/temporary-folder.ts";
import { runHistories, formatFailure } from "./histories.ts";
import { startTwoServers } from "./servers.ts";

const SETTINGS = { fsync: "off", synchronous_commit: "off", full_page_writes: "off", max_connections: "100" };
const PROGRESS_MS = 10_000;

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "500" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    jobs: { type: "string", default: "4" },
    shrink: { type: "string", default: "60" },
    failures: { type: "string", default: "20" },
  },
});
const say = (text: string): void => void process.stdout.write(`${text}\n`);

process.env["LANGCHAIN_CALLBACKS_BACKGROUND"] = "false";
process.env["LANGSMITH_TRACING"] = "false";
const count = Number(values.count);
const seed = Number(values.seed);
const startedAt = Date.now();
const seconds = (): number => Math.round((Date.now() - startedAt) / 1_000);
const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
await removeLeftovers();
const folder = await temporaryFolder({ inMemory: true });
let failed = 0;
let finished = 0;
try {
  const postgres = await startEmbeddedPostgres({
    dataFolder: folder.dataFolder,
    logger: pino({ level: "warn" }, process.stderr),
    settings: SETTINGS,
  });
  try {
    const servers = await startTwoServers(postgres.connectionString, process.stderr);
    try {
      let saidAt = Date.now();
      say(`Seeds ${seed} to ${seed + count - 1}`);
      failed = await runHistories({
        send: servers.send,
        seed,
        count,
        jobs: Number(values.jobs),
        shrinkMs: Number(values.shrink) * 1_000,
        failuresAtMost: Number(values.failures),
        signal: stop.signal,
        onDone(done) {
          finished = done;
          if (Date.now() - saidAt < PROGRESS_MS) return;
          saidAt = Date.now();
          const megabytes = Math.round(process.memoryUsage().rss / 1_000_000);
          say(`${done} of ${count} histories, ${seconds()} s, ${megabytes} MB`);
        },
        onFailure: (failure) => say(formatFailure(failure)),
      });
    } finally {
      await servers.close();
    }
  } finally {
    await postgres.close();
  }
} finally {
  await folder.remove();
}
const cpu = process.cpuUsage();
const cpuMs = Math.round((cpu.user + cpu.system) / 1_000 / Math.max(finished, 1));
const perMinute = Math.round((finished * 60) / Math.max(seconds(), 1));
say(
  `${finished} histories in ${seconds()} s (${perMinute} a minute, ${cpuMs} ms of CPU each); ${failed === 0 ? "none differs" : `${failed} differ`}.`,
);
process.exit(failed === 0 && !stop.signal.aborted ? 0 : 1);
