import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { apiOf, type Api } from "../helpers/api.ts";
import { startTestServer, type TestServer, type TestServerOptions } from "../helpers/app.ts";
import { eventually } from "../helpers/conditions.ts";
import { freshDatabase, type FreshDatabase } from "../helpers/database.ts";
import { query } from "../helpers/query.ts";
import { isAtGate, openGate } from "../fixtures/gates.ts";
import { ENGINE_GRAPHS } from "./graphs/config-file.ts";

/** What another process continues: runs whose process was lost, or handed them back. */

let database: FreshDatabase;
const servers: TestServer[] = [];
beforeEach(async () => {
  database = await freshDatabase();
});
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
  await database.drop();
});

const start = async (options: TestServerOptions = {}): Promise<{ server: TestServer; api: Api }> => {
  const server = await startTestServer({
    graphConfigFile: ENGINE_GRAPHS,
    connectionString: database.connectionString,
    shutdownGraceSeconds: 0,
    heartbeatSeconds: 0.3,
    sweepSeconds: 0.3,
    ...options,
  });
  servers.push(server);
  return { server, api: apiOf(server) };
};
const stop = async (server: TestServer): Promise<void> => {
  servers.splice(servers.indexOf(server), 1);
  await server.close();
};

const gated = (label: string, more: object = {}) => ({ assistant_id: "gate", input: { label }, ...more });
const untilAtGate = (label: string) => eventually(`${label} is at its gate`, () => isAtGate(label));
const doneOf = async (api: Api, threadId: string) => (await api.state(threadId)).values["done"];

/** An older delayed run that is not due yet, and a run at its gate with its first checkpoint stored. */
const overtaking = async (api: Api, label: string, more: object = {}) => {
  const threadId = await api.aThread();
  const late = await api.aRun(threadId, gated(`late ${label}`, { after_seconds: 3_600 }));
  const first = await api.aRun(threadId, gated(label, more));
  await untilAtGate(label);
  return { threadId, late, first };
};
const untilCheckpoint = (runId: string) =>
  eventually("its first checkpoint is stored", async () => {
    const rows = await query(database, "select from threadloom.checkpoints where run_id = $1", [runId]);
    return rows.length > 0;
  });
const comeDue = (runId: string) =>
  query(database, "update threadloom.runs set available_at = now() where run_id = $1", [runId]);

/** Of a run that was handed back: it counts as lost instead, as when the sweep finds that its process is dead. */
const loseProcess = async (threadId: string, runId: string, lost = 1): Promise<void> => {
  await query(
    database,
    "update threadloom.runs set lost_attempts = $3, updated_at = now() where thread_id = $1 and run_id = $2",
    [threadId, runId, lost],
  );
};

/** A newer checkpoint of another origin at the head of the thread. */
const moveHead = (threadId: string) =>
  query(
    database,
    `insert into threadloom.checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_id, run_id, metadata, metadata_text, names, record,
       contents, seq)
     select thread_id, checkpoint_ns, overlay(checkpoint_id::text placing 'ffff' from 1 for 4)::uuid, checkpoint_id, null, metadata,
       metadata_text, names, record, contents, seq + 1
     from threadloom.checkpoints where thread_id = $1 and checkpoint_ns = '' order by seq desc limit 1`,
    [threadId],
  );

describe("a run continues before an older run that came due meanwhile, with all its steps,", () => {
  const bothEnd = async (
    api: Api,
    label: string,
    { threadId, late, first }: Awaited<ReturnType<typeof overtaking>>,
  ) => {
    await untilAtGate(label);
    expect(isAtGate(`late ${label}`)).toBe(false);
    expect(await api.run(threadId, late.run_id)).toMatchObject({ status: "pending" });
    openGate(label);
    await untilAtGate(`late ${label}`);
    openGate(`late ${label}`);
    await api.untilQuiet(threadId);
    expect(await api.run(threadId, first.run_id)).toMatchObject({ status: "success" });
    expect(await api.run(threadId, late.run_id)).toMatchObject({ status: "success" });
    expect(await doneOf(api, threadId)).toEqual([label, `late ${label}`]);
  };

  test("when its process is lost", async () => {
    const { server, api } = await start();
    const runs = await overtaking(api, "lost");
    await untilCheckpoint(runs.first.run_id);
    await stop(server);
    await loseProcess(runs.threadId, runs.first.run_id);
    await comeDue(runs.late.run_id);
    await bothEnd((await start()).api, "lost", runs);
  });

  test("when its process stopped and handed it back", async () => {
    const { server, api } = await start();
    const runs = await overtaking(api, "handed back");
    await untilCheckpoint(runs.first.run_id);
    await comeDue(runs.late.run_id);
    await stop(server);
    await bothEnd((await start()).api, "handed back", runs);
  });

  test("when running runs are limited", async () => {
    const { server, api } = await start();
    const runs = await overtaking(api, "limited");
    await untilCheckpoint(runs.first.run_id);
    await comeDue(runs.late.run_id);
    await stop(server);
    await bothEnd((await start({ runningRunsByGraph: new Map([["gate", 3]]) })).api, "limited", runs);
  });

  test("when it had stored no checkpoint, and starts over with its input", async () => {
    const { server, api } = await start();
    const runs = await overtaking(api, "starting over", { durability: "exit" });
    await stop(server);
    await query(database, "delete from threadloom.checkpoints where run_id = $1", [runs.first.run_id]);
    await loseProcess(runs.threadId, runs.first.run_id);
    await comeDue(runs.late.run_id);
    await bothEnd((await start()).api, "starting over", runs);
  });

  test("when it continued from an older checkpoint of its thread", async () => {
    const { server, api } = await start();
    const threadId = await api.aThread();
    for (const label of ["before", "undone"]) {
      const run = await api.aRun(threadId, gated(label));
      await untilAtGate(label);
      openGate(label);
      await api.untilRunIs(threadId, run.run_id, "success");
    }
    const before = (await api.history(threadId)).find(
      ({ values, next }) => JSON.stringify(values["done"]) === '["before"]' && next.length === 0,
    );
    const late = await api.aRun(threadId, gated("late fork", { after_seconds: 3_600 }));
    const checkpoint_id = before?.checkpoint?.checkpoint_id;
    const first = await api.aRun(threadId, gated("fork", { checkpoint_id }));
    await untilAtGate("fork");
    await untilCheckpoint(first.run_id);
    await stop(server);
    await loseProcess(threadId, first.run_id);
    await comeDue(late.run_id);
    const { api: other } = await start();
    for (const label of ["fork", "late fork"]) {
      await untilAtGate(label);
      openGate(label);
    }
    await other.untilQuiet(threadId);
    expect(await doneOf(other, threadId)).toEqual(["before", "fork", "late fork"]);
  });
});

describe("a run that has begun, and waits for another process,", () => {
  /** The other process executes nothing, so the run waits. */
  const waitingRun = async (label: string) => {
    const { server, api } = await start();
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, gated(label));
    await untilAtGate(label);
    await untilCheckpoint(run.run_id);
    await stop(server);
    const { api: other, server: second } = await start({ jobsPerWorker: 0 });
    expect(await other.run(threadId, run.run_id)).toMatchObject({ status: "pending" });
    return { threadId, runId: run.run_id, api: other, server: second };
  };
  const checkpointsOf = (runId: string) =>
    query(database, "select from threadloom.checkpoints where run_id = $1", [runId]);

  test.each(["interrupt", "rollback"] as const)("ends before a run with '%s' starts", async (strategy) => {
    const label = `replaced by ${strategy}`;
    const { threadId, runId, api, server } = await waitingRun(label);
    const run = await api.aRun(threadId, gated(`new ${label}`, { multitask_strategy: strategy }));
    const isGone = strategy === "rollback";
    expect(await api.runs(threadId)).toMatchObject(
      isGone ? [{ run_id: run.run_id }] : [{ run_id: run.run_id }, { run_id: runId, status: "interrupted" }],
    );
    expect((await checkpointsOf(runId)).length > 0).toBe(!isGone);
    await stop(server);
    const { api: other } = await start();
    await untilAtGate(`new ${label}`);
    expect(isAtGate(label)).toBe(false);
    openGate(`new ${label}`);
    await other.untilRunIs(threadId, run.run_id, "success");
    expect(await doneOf(other, threadId)).toEqual([`new ${label}`]);
  });

  test("refuses a run with 'reject', lets one with 'enqueue' wait, and refuses updates of the state", async () => {
    const { threadId, api, server } = await waitingRun("kept");
    const rejected = await api.post(
      `/threads/${threadId}/runs`,
      gated("rejected", { multitask_strategy: "reject" }),
    );
    expect(rejected.status).toBe(409);
    const queued = await api.aRun(threadId, gated("queued", { multitask_strategy: "enqueue" }));
    const updated = await api.post(`/threads/${threadId}/state`, { values: { done: ["update"] } });
    expect(updated.status).toBe(409);
    expect(
      (await api.post("/threads/prune", { thread_ids: [threadId], strategy: "keep_latest" })).body,
    ).toEqual({
      pruned_count: 0,
    });
    await stop(server);
    const { api: other } = await start();
    await untilAtGate("kept");
    expect(isAtGate("queued")).toBe(false);
    openGate("kept");
    await untilAtGate("queued");
    openGate("queued");
    await other.untilRunIs(threadId, queued.run_id, "success");
    expect(await doneOf(other, threadId)).toEqual(["kept", "queued"]);
  });
});

test("a run ends with an error that says what to do if its thread got a newer checkpoint of another origin", async () => {
  const { server, api } = await start();
  const threadId = await api.aThread();
  const run = await api.aRun(threadId, gated("overtaken"));
  await untilAtGate("overtaken");
  await untilCheckpoint(run.run_id);
  await stop(server);
  await moveHead(threadId);
  const { api: other } = await start();
  const result = await other.join(threadId, run.run_id);
  expect(await other.run(threadId, run.run_id)).toMatchObject({ status: "error" });
  expect(result.__error__).toEqual({
    error: "RunOvertakenError",
    message: expect.stringMatching(
      /newer checkpoint of another origin\. Read the thread's history, and create a run/,
    ),
  });
  expect(await other.thread(threadId)).toMatchObject({ status: "error" });
});
