import { afterAll, beforeAll, expect, test } from "vitest";
import type { Metrics } from "../../src/api/status/schemas.ts";
import { apiOf, type Api } from "../helpers/api.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { eventually } from "../helpers/conditions.ts";
import { query } from "../helpers/query.ts";
import { ENGINE_GRAPHS } from "./graphs/config-file.ts";
import { isAtGate, openGate } from "../fixtures/gates.ts";

/** Longer than a busy machine delays a heartbeat; a suspect pauses for half of it. */
const LEASE_SECONDS = 5;

let server: TestServer;
let api: Api;

beforeAll(async () => {
  server = await startTestServer({
    graphConfigFile: ENGINE_GRAPHS,
    sweepSeconds: 0.2,
    leaseSeconds: LEASE_SECONDS,
    heartbeatSeconds: 0.3,
  });
  api = apiOf(server);
});
afterAll(async () => {
  await server?.close();
});

/** Runs left by a dead worker: their lease has expired, and `lost` earlier attempts ended the same way. */
const abandoned = async (
  count: number,
  lost: number,
  fields: object = { assistant_id: "sleep", input: { messages: [], milliseconds: 700 } },
): Promise<{ threadId: string; runId: string }[]> => {
  const runs: { threadId: string; runId: string }[] = [];
  for (let index = 0; index < count; index += 1) {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, { ...fields, after_seconds: 600 });
    runs.push({ threadId, runId: run.run_id });
  }
  await query(
    server,
    `update threadloom.runs set status = 'running', attempt = $2 + 1, lost_attempts = $2, available_at = now(),
       worker_id = 'dead0000-0000-4000-8000-000000000000', lease_until = now() - interval '1 second'
     where run_id = any($1::uuid[])`,
    [runs.map((run) => run.runId), lost],
  );
  return runs;
};

const running = async (runIds: string[]): Promise<number> =>
  (
    await query<{ count: number }>(
      server,
      `select count(*)::int as count from threadloom.runs where run_id = any($1::uuid[]) and status = 'running'
         and lease_until > now()`,
      [runIds],
    )
  )[0]?.count ?? 0;

test("runs that lost one worker together are executed together", async () => {
  const runs = await abandoned(3, 0, { assistant_id: "gate", input: { label: "together" } });
  await eventually("all run", async () => (await running(runs.map((run) => run.runId))) === 3);
  await eventually("all are through their gate", async () => {
    openGate("together");
    return (await running(runs.map((run) => run.runId))) === 0;
  });
  for (const run of runs) await api.untilRunIs(run.threadId, run.runId, "success");
});

test("runs in their last attempt are executed one at a time, because one of them may kill its worker", async () => {
  const runs = await abandoned(3, 1, { assistant_id: "gate", input: { label: "one of three" } });
  const ids = runs.map((run) => run.runId);
  for (let left = 3; left > 0; left -= 1) {
    await eventually("one is executed", () => isAtGate("one of three"));
    // It begins when others may begin beside the suspect.
    await api.aFinishedRun(await api.aThread(), { assistant_id: "counter", input: {} });
    expect(await running(ids)).toBe(1);
    openGate("one of three");
    await eventually("it has ended", async () => {
      const ended = "select 1 from threadloom.runs where run_id = any($1) and status = 'success'";
      return (await query(server, ended, [ids])).length === 4 - left;
    });
  }
});

test("a run that was handed back ten times is not given up at its first lost worker", async () => {
  const [run] = await abandoned(1, 0);
  await query(server, "update threadloom.runs set attempt = 11 where run_id = $1", [run?.runId]);
  await api.untilRunIs(run?.threadId ?? "", run?.runId ?? "", "success");
});

test("a run that lost its last worker ends as error with an explanation", async () => {
  const [run] = await abandoned(1, 2);
  await api.untilRunIs(run?.threadId ?? "", run?.runId ?? "", "error");
  expect((await api.thread(run?.threadId ?? "")).error?.message).toContain("given up after 3 attempts");
});

test("a run in its last attempt waits while its process has other work", async () => {
  const held = await api.aRun(await api.aThread(), { assistant_id: "gate", input: { label: "neighbour" } });
  await eventually("a run is in progress", () => isAtGate("neighbour"));
  const [suspect] = await abandoned(1, 1);
  await api.untilRunIs(suspect?.threadId ?? "", suspect?.runId ?? "", "pending");
  // Longer than the suspect's pause, and than two polls for such a run.
  await api.aFinishedRun(await api.aThread(), {
    assistant_id: "sleep",
    input: { milliseconds: 900 * LEASE_SECONDS },
  });
  expect((await api.run(suspect?.threadId ?? "", suspect?.runId ?? "")).status).toBe("pending");
  // The metrics show that the run waits, and why; the log says so once, and not at each poll.
  expect((await api.get<Metrics>("/metrics?format=json")).body.queue?.num_suspects).toBe(1);
  const logged = server.lines
    .map((line) => JSON.parse(line) as { msg: string; run_id?: string; level: number })
    .filter(({ msg, run_id }) => run_id === suspect?.runId && msg.includes("waits to be executed alone"));
  expect(logged).toMatchObject([{ level: 40, graph_id: "sleep", lost_attempts: 2 }]);
  openGate("neighbour");
  await api.untilRunIs(held.thread_id, held.run_id, "success");
  await api.untilRunIs(suspect?.threadId ?? "", suspect?.runId ?? "", "success");
});

test("no run begins beside a run in its last attempt before that has lived for a while", async () => {
  const [suspect] = await abandoned(1, 1, { assistant_id: "gate", input: { label: "suspect" } });
  await eventually("it is executed", () => isAtGate("suspect"));
  const counter = { assistant_id: "counter", input: { count: 1 } };
  const other = await api.aRun(await api.aThread(), counter);
  await api.untilRunIs(other.thread_id, other.run_id, "success");
  const [began] = await query<{ seconds: number }>(
    server,
    `select extract(epoch from other.started_at - suspect.started_at)::float8 as seconds
     from threadloom.runs other, threadloom.runs suspect where other.run_id = $1 and suspect.run_id = $2`,
    [other.run_id, suspect?.runId],
  );
  expect(began?.seconds).toBeGreaterThan(0.45 * LEASE_SECONDS);
  expect(isAtGate("suspect")).toBe(true);
  expect((await api.aRun(await api.aThread(), counter)).status).toBe("running");
  openGate("suspect");
  await api.untilRunIs(suspect?.threadId ?? "", suspect?.runId ?? "", "success");
});
