import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createAuthorize } from "../../../src/access/authorize.ts";
import { THE_SERVER } from "../../../src/access/caller.ts";
import { createDueCrons } from "../../../src/api/crons/firing/due.ts";
import { createFiring, type FiringParts } from "../../../src/api/crons/firing/firing.ts";
import type { RunKey } from "../../../src/platform/encryption/columns.ts";
import type { CronRecord } from "../../../src/api/crons/schemas.ts";
import type { Database } from "../../../src/platform/database/database.ts";
import { NO_FAULTS, type FaultPoint, type Faults } from "../../../src/platform/domain/faults.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { createBehindOthersStore } from "../../../src/api/runs/creation/behind-others.ts";
import { createPendingLimits } from "../../../src/api/runs/creation/pending-limits.ts";
import { createScheduledRuns } from "../../../src/api/runs/creation/scheduled.ts";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { TEST_ENCRYPTION } from "../../helpers/encryption.ts";
import { listeningLogger } from "../../helpers/parts.ts";
import { query } from "../../helpers/query.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";
import { eventually } from "../../helpers/conditions.ts";
import { isSomeWaiting } from "../../helpers/locks.ts";

/** The scheduler alone; a server beside it answers requests and executes nothing. */

let server: TestServer;
let api: Api;
let database: Database;
beforeAll(async () => {
  server = await startTestServer({ role: "api" });
  api = apiOf(server);
  database = openTestDatabase(server.connectionString, { poolSize: 4, encryption: TEST_ENCRYPTION });
});
afterAll(async () => {
  await database.close();
  await server.close();
});
beforeEach(async () => {
  await query(server, "delete from threadloom.crons");
});

interface StoredRun extends RunKey {
  metadata: Record<string, unknown>;
  thread_metadata: Record<string, unknown>;
  thread_config: unknown;
  kwargs: object;
  replaced_metadata: object;
  available_at: unknown;
  created_at: unknown;
  updated_at: unknown;
}

const aFiring = async (parts: Partial<FiringParts> = {}) => {
  const { logger, lines } = listeningLogger();
  const authorize = createAuthorize();
  const announced: string[] = [];
  const released: number[] = [];
  const limits = createPendingLimits({ perThread: 0, perCaller: 0, keyFactor: 1 });
  const storeRuns = createScheduledRuns({
    takesRun: () => true,
    announcements: {
      available: ({ run_id }) => void announced.push(run_id),
      ended: () => undefined,
      stop: () => undefined,
    },
    behindOthers: createBehindOthersStore(
      {
        replaceWaiting: (_transaction, waiting) =>
          waiting.length === 0 ? Promise.resolve([]) : Promise.reject(new Error("nothing to replace")),
      },
      limits,
    ),
    limits,
    threadTtl: undefined,
  });
  const rights = {
    threads: await authorize(THE_SERVER, "threads", "create_run", {
      ...{ assistant_id: "", run_id: "", status: "pending" as const, metadata: {}, kwargs: {} },
    }),
    assistants: await authorize(THE_SERVER, "assistants", "read", { assistant_id: "" }),
  };
  const due = createDueCrons(database, ["agent"]);
  const holdRuns = () => () => void released.push(announced.length);
  const firing = createFiring({
    database,
    due,
    storeRuns,
    holdRuns,
    rights,
    faults: NO_FAULTS,
    logger,
    ...parts,
  });
  return { fire: () => firing.fire(() => false), due, storeRuns, announced, released, lines };
};
const dyingAt = (point: FaultPoint): Faults => ({
  reached(reached) {
    if (reached === point) throw Object.assign(new Error("Connection terminated unexpectedly"));
  },
});

/** A cron that was due one second ago. */
const aDueCron = async (fields: object = {}, path = "/runs/crons"): Promise<string> => {
  const { cron_id } = (
    await api.post<CronRecord>(path, { assistant_id: "agent", schedule: "0 0 1 1 *", ...fields })
  ).body;
  await query(
    server,
    "update threadloom.crons set next_run_date = now() - interval '1 second' where cron_id = $1",
    [cron_id],
  );
  return cron_id;
};
const runsOf = async (cronId: string): Promise<number> => {
  const [row] = await query<{ runs: number }>(
    server,
    "select count(*)::int as runs from threadloom.runs where metadata ->> 'cron_id' = $1",
    [cronId],
  );
  return row!.runs;
};
const isDue = async (cronId: string): Promise<boolean> => {
  const { next_run_date } = (await api.get<CronRecord>(`/runs/crons/${cronId}`)).body;
  return next_run_date !== null && Date.parse(next_run_date) < Date.now();
};

test("a crash before the commit leaves the cron due and no run; one after it leaves a run and no due cron", async () => {
  const cronId = await aDueCron();
  const before = await aFiring({ faults: dyingAt("before-firing") });
  await expect(before.fire()).rejects.toThrow("Connection terminated");
  expect([await isDue(cronId), await runsOf(cronId)]).toEqual([true, 0]);
  const after = await aFiring({ faults: dyingAt("after-firing") });
  await expect(after.fire()).rejects.toThrow("Connection terminated");
  expect([await isDue(cronId), await runsOf(cronId)]).toEqual([false, 1]);
  const next = await aFiring();
  expect(await next.fire()).toBe(false);
  expect([await isDue(cronId), await runsOf(cronId)]).toEqual([false, 1]);
});

test("a cron waits only for its own runs on its own thread", async () => {
  const [one, other] = [await api.aThread(), await api.aThread()];
  const cronId = await aDueCron({}, `/threads/${one}/runs/crons`);
  await aDueCron({}, `/threads/${other}/runs/crons`);
  await api.aRun(other, { assistant_id: "agent", metadata: { cron_id: cronId } });
  const { fire } = await aFiring();
  expect(await fire()).toBe(true);
  const runs = await query(server, "select from threadloom.runs where thread_id = $1", [one]);
  expect(runs).toHaveLength(1);
});

test("a cron that can't be fired does not delay others, and is tried again at its next time", async () => {
  const [bad, good] = [await aDueCron({ metadata: { bad: true } }), await aDueCron()];
  const { storeRuns, announced } = await aFiring();
  const { fire, lines } = await aFiring({
    storeRuns: async (transaction, rights, requested) => {
      if (requested.some(({ run }) => run.metadata["bad"] === true)) throw new Error("a fault of ours");
      return await storeRuns(transaction, rights, requested);
    },
  });
  expect(await fire()).toBe(true);
  expect([await runsOf(bad), await runsOf(good)]).toEqual([0, 1]);
  expect(announced).toHaveLength(1);
  expect(await isDue(bad)).toBe(false);
  expect((await api.get<CronRecord>(`/runs/crons/${bad}`)).body).toMatchObject({
    enabled: true,
    error: null,
  });
  expect(lines.filter((line) => line.includes(bad) && line.includes("a fault of ours"))).toHaveLength(1);
});

test("a cron whose thread is locked waits alone", async () => {
  const [held, free] = [await api.aThread(), await api.aThread()];
  const crons = [
    await aDueCron({}, `/threads/${held}/runs/crons`),
    await aDueCron({}, `/threads/${free}/runs/crons`),
    await aDueCron(),
  ];
  const { fire } = await aFiring();
  await database.transaction(async (transaction) => {
    await transaction.query("select from threadloom.threads where thread_id = $1 for update", [held]);
    expect(await fire()).toBe(true);
    expect(await fire()).toBe(false);
    expect(await Promise.all(crons.map(runsOf))).toEqual([0, 1, 1]);
  });
  expect(await fire()).toBe(true);
  expect(await Promise.all(crons.map(runsOf))).toEqual([1, 1, 1]);
});

test("a thread that is deleted while its cron is fired takes the cron along, without a deadlock", async () => {
  const threadId = await api.aThread();
  const cronId = await aDueCron({}, `/threads/${threadId}/runs/crons`);
  const { storeRuns } = await aFiring();
  let deleted: Promise<{ status: number }> | undefined;
  const { fire } = await aFiring({
    storeRuns: async (transaction, rights, requested) => {
      // The cron is locked. The deletion locks the thread and then waits for the cron.
      deleted = api.remove(`/threads/${threadId}`);
      await eventually("the deletion waits", () => isSomeWaiting((text) => query(server, text)));
      return await storeRuns(transaction, rights, requested);
    },
  });
  expect(await fire()).toBe(false);
  expect((await deleted)?.status).toBe(204);
  expect((await api.get(`/runs/crons/${cronId}`)).status).toBe(404);
  expect(await runsOf(cronId)).toBe(0);
});

test("several crons of one thread are fired together, in order", async () => {
  const threadId = await api.aThread();
  const crons = [];
  for (const input of ["one", "two", "three"])
    crons.push(await aDueCron({ input }, `/threads/${threadId}/runs/crons`));
  const { fire, announced, released } = await aFiring();
  expect(await fire()).toBe(true);
  expect(await Promise.all(crons.map(runsOf))).toEqual([1, 1, 1]);
  expect(announced).toHaveLength(3);
  // Runs are held back only until all crons are fired and announced.
  expect(released).toEqual([3]);
  const [thread] = await query(
    server,
    "select unfinished_runs, turns::int, status, version > 0 as changed from threadloom.threads where thread_id = $1",
    [threadId],
  );
  expect(thread).toEqual({ unfinished_runs: 3, turns: 3, status: "busy", changed: true });
  const behind = await query(
    server,
    "select kwargs ->> 'input' as input, behind from threadloom.runs where thread_id = $1 order by created_at",
    [threadId],
  );
  expect(behind.map((run) => run["behind"])).toEqual([false, true, true]);
});

test("the runs held at once have a limit in bytes", async () => {
  const CRONS = 20;
  for (let index = 0; index < CRONS; index += 1) await aDueCron();
  await query(server, `update threadloom.crons set payload = '{"input": "' || repeat('x', 1000000) || '"}'`);
  const { due, fire } = await aFiring();
  const held = await database.transaction((transaction) =>
    due.claim(transaction, { except: [], only: undefined, limit: 200 }),
  );
  expect(held).toHaveLength(17);
  expect(await fire()).toBe(true);
  const [row] = await query<{ due: number }>(
    server,
    "select count(*)::int as due from threadloom.crons where next_run_date <= now()",
  );
  expect(row!.due).toBe(0);
});

test("the run of a cron equals a requested one, whatever its assistant and its thread add", async () => {
  const { assistant_id } = (
    await api.post<{ assistant_id: string }>("/assistants", {
      graph_id: "agent",
      config: { tags: ["a"], configurable: { from: "assistant", a: 1 } },
      context: { c: "assistant" },
      metadata: { m: "assistant" },
    })
  ).body;
  const asked = {
    assistant_id,
    input: { n: 1 },
    config: { configurable: { from: "request" } },
    context: { d: "request" },
    metadata: { n: "request" },
  };
  const threads = [await api.aThread({ metadata: { t: 1 } }), await api.aThread({ metadata: { t: 1 } })];
  const cronId = await aDueCron(asked, `/threads/${threads[1]}/runs/crons`);
  await api.aRun(threads[0]!, { ...asked, metadata: { ...asked.metadata, cron_id: cronId } });
  const alone = await aDueCron({ ...asked, on_run_completed: "keep" });
  await (await aFiring()).fire();
  const stored = async (where: string, value: string) => {
    const [found] = await database.query<StoredRun>(
      `select r.*, t.metadata as thread_metadata, t.config as thread_config, t.status as thread_status,
         t.unfinished_runs, t.turns from threadloom.runs r join threadloom.threads t using (thread_id) where ${where} = $1`,
      [value],
    );
    const opened = database.encryption.decrypted("runs", found!);
    const { run_id, thread_id, available_at, created_at, updated_at, ...rest } = opened;
    expect([run_id, thread_id, available_at, created_at, updated_at]).not.toContain(null);
    const ofThread = { thread_id, metadata: rest.thread_metadata, config: rest.thread_config };
    const { metadata: thread_metadata, config: thread_config } = database.encryption.decrypted(
      "threads",
      ofThread,
    );
    // Headers for the run's graph (`http.configurable_headers`): a cron has no request.
    return { ...rest, thread_metadata, thread_config, kwargs: { ...rest.kwargs, headers: undefined } };
  };
  const wanted = await stored("r.thread_id", threads[0]!);
  expect(await stored("r.thread_id", threads[1]!)).toEqual(wanted);
  const { metadata, thread_metadata, ...rest } = await stored("r.metadata ->> 'cron_id'", alone);
  const { t: _, ...ofThread } = wanted.thread_metadata;
  expect(thread_metadata).toEqual({ ...asked.metadata, cron_id: alone, ...ofThread });
  const { t: __, ...ofRun } = wanted.metadata;
  expect(metadata).toEqual({ ...ofRun, cron_id: alone });
  // A thread created with its run has no replaced values.
  const { replaced_metadata, metadata: ___, thread_metadata: ____, ...wantedRest } = wanted;
  expect(rest).toEqual({ ...wantedRest, replaced_metadata: {} });
  expect(replaced_metadata).toEqual({});
});

test("a run that can't be stored ends none of those that it would have replaced", async () => {
  const threadId = await api.aThread();
  const path = `/threads/${threadId}/runs`;
  const { run_id } = (await api.post<{ run_id: string }>(path, { assistant_id: "agent" })).body;
  // Simulates a run that another server executes.
  await query(
    server,
    "update threadloom.runs set status = 'running', attempt = 1, started_at = now(), lease_until = now() + interval '1 hour', worker_id = 'dead0000-0000-4000-8000-000000000000' where run_id = $1",
    [run_id],
  );
  await aDueCron({ multitask_strategy: "rollback" }, `${path}/crons`);
  const { storeRuns } = await aFiring();
  const { fire } = await aFiring({
    // Simulates the deletion of the assistant after it was read and before its run is stored.
    storeRuns: async (transaction, rights, requested) =>
      await storeRuns(
        transaction,
        rights,
        requested.map((one) => ({ ...one, run: { ...one.run, assistantId: newId() } })),
      ),
  });
  expect(await fire()).toBe(true);
  const [row] = await query(server, "select cancel_action from threadloom.runs where run_id = $1", [run_id]);
  expect(row).toEqual({ cancel_action: null });
});

test("an assistant is deleted while its cron is fired, and the cron is disabled afterwards", async () => {
  const { assistant_id } = (await api.post<{ assistant_id: string }>("/assistants", { graph_id: "agent" }))
    .body;
  const cronId = await aDueCron({ assistant_id });
  const { fire } = await aFiring();
  await database.transaction(async (transaction) => {
    await transaction.query("select from threadloom.crons where cron_id = $1 for update", [cronId]);
    expect((await fetch(`${server.url}/assistants/${assistant_id}`, { method: "DELETE" })).status).toBe(204);
  });
  await fire();
  expect((await api.get(`/runs/crons/${cronId}`)).body).toMatchObject({
    enabled: false,
    next_run_date: null,
    error: `Assistant '${assistant_id}' not found.`,
  });
});
