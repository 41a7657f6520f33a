/**
 * `npm run test:abuse [-- seed [A4 A8 connections storm …] [--without-users]]`: a hostile caller of a server in a process of its own, with
 * the heap of `npm start` and two users of an `Auth` and a key as callers. First formerly harmful requests, and thousands of connections,
 * beside the work of others; then mutated requests for all routes. Exits with 1 if a criterion was not met. Less than ten minutes.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { removeLeftovers } from "../helpers/temporary-folder.ts";
import { spawnServer } from "../helpers/server-process.ts";
import { startTestDatabase } from "../faults/test-database.ts";
import { NOBODY, USERS } from "./callers.ts";
import { hostilities, type Hostility } from "./hostile.ts";
import { holdMany } from "./many-connections.ts";
import type { NormalLoad } from "./normal-load.ts";
import { createSender, type Outcome } from "./send.ts";
import { runStorm } from "./storm.ts";

/** Fewer if the machine has other work. */
const REQUESTS = Number(process.env["ABUSE_REQUESTS"] ?? 50_000);
const AT_A_TIME = 24;
const HEAP_MB = 1_024;
/** The memory of a process besides this heap: code, buffers, threads. */
const MEMORY_AT_MOST_MB = 1_600;
const MEASURED_MS = 8_000;
const SETTLING_MS = 1_000;
const RATIO_AT_MOST = 2;
const NORMAL_LOAD = fileURLToPath(new URL("normal-load.ts", import.meta.url));

const { values: options, positionals } = parseArgs({
  options: { "without-users": { type: "boolean", default: false } },
  allowPositionals: true,
});
const withoutUsers = options["without-users"];
const callers = withoutUsers ? NOBODY : USERS;
const [seedText, ...only] = positionals;

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const pause = async (milliseconds: number): Promise<void> =>
  await new Promise((resolve) => setTimeout(resolve, milliseconds));

const memoryOf = async (pid: number): Promise<{ now: number; peak: number }> => {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  const megabytes = (name: string) =>
    Math.round(Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1024);
  return { now: megabytes("VmRSS"), peak: megabytes("VmHWM") };
};

/** In a process of its own, so that this one's requests do not delay the measurement. */
const normalLoad = async (url: string): Promise<NormalLoad> => {
  const child = spawn(
    process.execPath,
    ["--import", "tsx", NORMAL_LOAD, url, String(MEASURED_MS), JSON.stringify(callers.normal)],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  await once(child, "close");
  return JSON.parse(output) as NormalLoad;
};

const measured = async (url: string, beside?: Hostility) => {
  const hostile = createSender(url, 64, callers.hostile);
  const outcomes: Record<string, number> = {};
  let over = false;
  const note = (outcome: Outcome): void => {
    const name =
      outcome.kind === "answered"
        ? String(outcome.status)
        : outcome.kind === "broken"
          ? `broken ${outcome.why}`
          : outcome.kind;
    outcomes[name] = (outcomes[name] ?? 0) + 1;
  };
  try {
    await beside?.prepare?.(hostile);
    const attack = async (): Promise<void> => {
      const requests = beside?.requests() ?? [];
      while (requests.length > 0 && !over) {
        await Promise.all(requests.map(async (request) => note(await hostile.send(request, MEASURED_MS))));
      }
    };
    const attacking = attack();
    await pause(SETTLING_MS);
    const others = await normalLoad(url);
    over = true;
    await attacking;
    return { ...others, outcomes };
  } finally {
    hostile.close();
  }
};

const loadNow = (): string => loadavg()[0]!.toFixed(1);

const seed = Number(seedText ?? Date.now() % 1_000_000);
/** Without the storm if the arguments name only hostilities, by the beginnings of their titles. */
const isWanted = (title: string): boolean =>
  only.length === 0 || only.some((beginning) => title.startsWith(beginning));
say(
  `Seed ${seed}; the same again with: npm run test:abuse -- ${seed}${withoutUsers ? " --without-users" : ""}`,
);
await removeLeftovers();
const startedAt = Date.now();
const database = await startTestDatabase();
const complaints: string[] = [];
const config = fileURLToPath(new URL(`graphs/${callers.config}`, import.meta.url));
const server = spawnServer(["--config", config, "--port", "0"], {
  ...callers.environment,
  DATABASE_URL: await database.create("abuse"),
  NODE_OPTIONS: `--max-old-space-size=${HEAP_MB}`,
});
try {
  const url = await server.address();
  const pid = server.child.pid ?? 0;
  const before = await measured(url);
  say(`Normal work alone: p50 ${before.p50} ms, p99 ${before.p99} ms (${before.requests} requests)`);

  const rows: string[] = [];
  for (const hostility of hostilities().filter(({ title }) => isWanted(title))) {
    const alone = await measured(url);
    const beside = await measured(url, hostility);
    const memory = await memoryOf(pid);
    const ratio = beside.p99 / Math.max(alone.p99, 1);
    const row = `${hostility.title} | ${alone.p99} ms | ${beside.p99} ms | ${ratio.toFixed(1)} | ${memory.now} MB, at most ${memory.peak} | ${JSON.stringify(beside.outcomes)} | ${loadNow()}`;
    rows.push(row);
    say(row);
    if (ratio >= RATIO_AT_MOST)
      complaints.push(`${hostility.title}: p99 of others ${ratio.toFixed(1)} times as long`);
    for (const fault of beside.faults.slice(0, 3))
      complaints.push(`${hostility.title}: others were answered ${fault}`);
    for (const status of Object.keys(beside.outcomes)) {
      // Reset: the server had answered while its caller was still sending.
      if (/^50[^3]$|^broken (?!ECONNRESET|EPIPE)/.test(status))
        complaints.push(`${hostility.title}: ${status}`);
    }
    if (memory.now === 0) throw new Error(`The server has ended: ${server.output().slice(-3_000)}`);
  }

  if (isWanted("connections")) {
    const alone = await measured(url);
    const many = await holdMany({
      url,
      pid,
      credentials: callers.hostile,
      normalLoad: () => normalLoad(url),
    });
    const memory = await memoryOf(pid);
    const ratio = many.beside.p99 / Math.max(alone.p99, 1);
    const gone = Object.entries(many.held).map(
      ([kind, held]) =>
        `${held.opened} ${kind}` +
        (held.gone === 0 ? "" : `, ${held.gone} saw their end after ${held.firstGone} to ${held.lastGone} s`),
    );
    const { before, during, after } = many.descriptors;
    const row = `5,000 idle and 1,000 slow connections | ${alone.p99} ms | ${many.beside.p99} ms | ${ratio.toFixed(1)} | ${memory.now} MB, at most ${memory.peak} | ${gone.join("; ")}; all closed after ${many.allGone} s; file descriptors ${before}, ${during}, ${after} | ${loadNow()}`;
    rows.push(row);
    say(row);
    if (ratio >= RATIO_AT_MOST)
      complaints.push(`connections: p99 of others ${ratio.toFixed(1)} times as long`);
    for (const fault of many.beside.faults.slice(0, 3))
      complaints.push(`connections: others were answered ${fault}`);
    complaints.push(...many.complaints);
  }

  if (isWanted("storm")) {
    const answer = await fetch(`${url}/openapi.json`, { headers: callers.normal });
    const document: unknown = await answer.json();
    const storm = await runStorm({
      url,
      document,
      seed,
      requests: REQUESTS,
      atATime: AT_A_TIME,
      assistants: ["agent", "counter", "two-step", "approval"],
      callers,
    });
    say(`${storm.requests} mutated requests: ${JSON.stringify(storm.answers)}`);
    complaints.push(...storm.complaints);
    if (storm.requests < REQUESTS) complaints.push(`only ${storm.requests} mutated requests were sent`);
  }

  const memory = await memoryOf(pid);
  say(`Memory at the end ${memory.now} MB, at most ${memory.peak} MB`);
  if (memory.peak > MEMORY_AT_MOST_MB)
    complaints.push(`${memory.peak} MB of memory, ${MEMORY_AT_MOST_MB} are allowed`);
  say(
    `\n| request | p99 of others alone | beside it | times | memory | answers | load |\n|---|---|---|---|---|---|---|`,
  );
  for (const row of rows) say(`| ${row} |`);
} catch (error) {
  complaints.push(`it broke off: ${error instanceof Error ? error.stack : String(error)}`);
} finally {
  await server.kill();
  await database.close();
}
for (const complaint of complaints) say(`! ${complaint}`);
say(
  `${Math.round((Date.now() - startedAt) / 1000)} s in all; ${complaints.length === 0 ? "met" : "not met"}.`,
);
process.exit(complaints.length === 0 ? 0 : 1);
