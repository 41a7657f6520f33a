import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Trace } from "../../../src/api/runs/traces/schemas.ts";
import { apiOf } from "../../helpers/api.ts";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { query } from "../../helpers/query.ts";
import { spawnServer, type ServerProcess } from "../../helpers/server-process.ts";
import { temporaryFolder, type TemporaryFolder } from "../../helpers/temporary-folder.ts";

const GRAPHS = fileURLToPath(new URL("./langgraph.json", import.meta.url));
const RUNS = Number(process.env["USAGE_RUNS"] ?? 90);
const KILLS = Number(process.env["USAGE_KILLS"] ?? 4);
/** The usage of a call is stored 100 ms after it; the rest is for a busy machine. */
const STORED_AFTER_MS = 1_000;

interface Server {
  process: ServerProcess;
  url: string;
  pid: number;
}
interface Reported {
  run_id: string;
  attempt: number;
  pid: number;
  at: number;
}

let database: FreshDatabase;
let folder: TemporaryFolder;
let reportFile: string;
let servers: Server[] = [];
beforeAll(async () => {
  database = await freshDatabase();
  folder = await temporaryFolder();
  reportFile = join(folder.path, "calls");
});
afterAll(async () => {
  for (const { process: one } of servers) await one.kill();
  await database.drop();
  await folder.remove();
});

const start = async (): Promise<Server> => {
  const started = spawnServer(["--config", GRAPHS, "--port", "0"], {
    DATABASE_URL: database.connectionString,
    REPORTED_CALLS: reportFile,
    LEASE_SECONDS: "3",
  });
  return { process: started, url: await started.address(), pid: started.child.pid ?? 0 };
};

test("each call of a model counts once, over three servers that are killed in turn", async () => {
  servers = await Promise.all([start(), start(), start()]);
  const killedAt = new Map<number, number>();
  const { url } = servers[0]!;
  for (let first = 0; first < RUNS; first += 500) {
    const batch = Array.from({ length: Math.min(500, RUNS - first) }, () => ({
      assistant_id: "calls",
      input: {},
      on_completion: "keep",
    }));
    expect((await apiOf({ url }).post("/runs/batch", batch)).status).toBe(200);
  }
  const statuses = () =>
    query<{ status: string; runs: number }>(
      database,
      "select status, count(*)::int as runs from threadloom.runs group by status",
    );
  const ended = async (): Promise<number> =>
    (await statuses()).reduce(
      (sum, { status, runs }) => sum + (status === "pending" || status === "running" ? 0 : runs),
      0,
    );
  for (let kill = 0; kill < KILLS; kill += 1) {
    await eventually("some runs have ended", async () => (await ended()) >= (kill * RUNS) / (KILLS + 1));
    const victim = servers.shift()!;
    killedAt.set(victim.pid, Date.now());
    await victim.process.kill();
    servers.push(await start());
  }
  await eventually("all runs have ended", async () => (await ended()) === RUNS, 120_000);

  const lines = (await readFile(reportFile, "utf8")).trim().split("\n");
  const calls = lines.map((line) => JSON.parse(line) as Reported);
  const usage = await query<{ run_id: string; attempt: number; calls: number }>(
    database,
    "select run_id, attempt, sum(calls)::int as calls from threadloom.model_usage group by 1, 2",
  );
  const counted = new Map(usage.map(({ run_id, attempt, calls: sum }) => [`${run_id} ${attempt}`, sum]));
  const wrong: string[] = [];
  let lost = 0;
  const byAttempt = new Map<string, Reported[]>();
  for (const reported of calls) {
    const key = `${reported.run_id} ${reported.attempt}`;
    byAttempt.set(key, [...(byAttempt.get(key) ?? []), reported]);
  }
  for (const [key, own] of byAttempt) {
    const sum = counted.get(key) ?? 0;
    const killed = killedAt.get(own[0]!.pid);
    const sure = own.filter(({ at }) => killed === undefined || at < killed - STORED_AFTER_MS).length;
    if (sum < sure || sum > own.length) wrong.push(`${key}: ${own.length} calls, ${sum} counted`);
    lost += own.length - sum;
    counted.delete(key);
  }
  expect(wrong).toEqual([]);
  expect([...counted.keys()], "usage without a call").toEqual([]);
  // Only what a killed server had not stored yet.
  expect(lost).toBeLessThanOrEqual(KILLS * 10);
  process.stdout.write(`${calls.length} calls, ${lost} not counted, ${KILLS} kills, ${RUNS} runs\n`);
});

test("the trace of a run whose server was killed has all its attempts", async () => {
  const [run] = await query<{ thread_id: string; run_id: string }>(
    database,
    "select thread_id, run_id from threadloom.runs where attempt > 1 and status = 'success' limit 1",
  );
  const { url } = servers[0]!;
  const { body } = await apiOf({ url }).get<Trace>(`/threads/${run!.thread_id}/runs/${run!.run_id}/trace`);
  expect(body.attempts.length).toBeGreaterThan(1);
  const names = body.attempts.flatMap(({ spans }) =>
    spans.filter(({ status }) => status === "success").map(({ name }) => name),
  );
  expect(names).toContain("third");
});
