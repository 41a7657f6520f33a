import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { CronRecord } from "../../../src/api/crons/schemas.ts";
import type { RunRecord } from "../../../src/api/runs/schemas.ts";
import { apiOf, saying, textsOf, type Api, type ThreadRecord } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { onServer } from "../../helpers/servers.ts";

/** Due crons on servers that run them. Tests set the due time in the table, so they need not wait for a full minute. */

let server: TestServer;
let api: Api;
onServer({}, (opened) => ({ server, api } = opened));

const RARELY = "0 0 1 1 *";

const aCron = async (fields: object = {}, path = "/runs/crons"): Promise<CronRecord> => {
  const { status, text, body } = await api.post<CronRecord>(path, {
    assistant_id: "agent",
    schedule: RARELY,
    input: saying("hello"),
    ...fields,
  });
  if (status !== 200) throw new Error(text);
  return body;
};
const read = async (cronId: string) => (await api.get<CronRecord>(`/runs/crons/${cronId}`)).body;
const makeDue = async (cronId: string, seconds = 0): Promise<void> => {
  await query(
    server,
    `update threadloom.crons set next_run_date = now() - $2 * interval '1 second' where cron_id = $1`,
    [cronId, seconds],
  );
  // A server that runs crons polls at once after a change, and otherwise each second.
  await api.patch(`/runs/crons/${cronId}`, {});
};
/** Waits until the due time was handled. */
const untilAdvanced = async ({ cron_id, next_run_date }: CronRecord): Promise<CronRecord> =>
  await eventually(`cron ${cron_id} is advanced`, async () => {
    const cron = await read(cron_id);
    return cron.next_run_date === next_run_date || cron.next_run_date === null ? cron : undefined;
  });
const runsOf = async (cronId: string): Promise<RunRecord[]> =>
  (await api.post<RunRecord[]>("/runs/search", { metadata: { cron_id: cronId }, limit: 1_000 })).body;

test("a cron runs on a new thread each time, which stays if requested", async () => {
  const cron = await aCron({
    on_run_completed: "keep",
    metadata: { team: "a" },
    config: { tags: ["t"], configurable: { x: 1 } },
    context: { user: "u" },
    stream_mode: "updates",
    stream_resumable: true,
    durability: "exit",
    webhook: "https://example.org/hook",
  });
  for (const count of [1, 2]) {
    await makeDue(cron.cron_id);
    await untilAdvanced(cron);
    expect(await runsOf(cron.cron_id)).toHaveLength(count);
  }
  const [second, first] = await runsOf(cron.cron_id);
  expect(second?.thread_id).not.toBe(first?.thread_id);
  const run = await api.untilRunIs(second!.thread_id, second!.run_id, "success");
  expect(run).toMatchObject({
    assistant_id: cron.assistant_id,
    metadata: { team: "a", cron_id: cron.cron_id, graph_id: "agent" },
    multitask_strategy: "enqueue",
    kwargs: {
      input: saying("hello"),
      config: { tags: ["t"], configurable: { x: 1 } },
      context: { user: "u" },
      stream_mode: ["updates"],
      durability: "exit",
      webhook: "https://example.org/hook",
    },
  });
  expect(textsOf((await api.thread(run.thread_id)).values?.messages)[0]).toBe("hello");
  const { metadata, status } = await api.thread(run.thread_id);
  expect({ metadata, status }).toEqual({
    metadata: { team: "a", cron_id: cron.cron_id, graph_id: "agent", assistant_id: cron.assistant_id },
    status: "idle",
  });
  const { body: kept } = await api.post<ThreadRecord[]>("/threads/search", {
    metadata: { cron_id: cron.cron_id },
  });
  expect(kept.map(({ thread_id }) => thread_id)).toEqual([second?.thread_id, first?.thread_id]);
});

test("the thread of a cron's run is deleted with it, unless it is kept", async () => {
  for (const [fields, goes] of [
    [{}, true],
    [{ on_run_completed: "keep" }, false],
  ] as const) {
    const cron = await aCron(fields);
    await makeDue(cron.cron_id);
    await untilAdvanced(cron);
    expect(
      await query(server, "select delete_thread from threadloom.runs where metadata ->> 'cron_id' = $1", [
        cron.cron_id,
      ]),
    ).toEqual([{ delete_thread: goes }]);
  }
});

test("a cron of a thread runs on that thread, one run after the other", async () => {
  const threadId = await api.aThread();
  const path = `/threads/${threadId}/runs/crons`;
  const crons = [await aCron({ input: saying("one") }, path), await aCron({ input: saying("two") }, path)];
  for (const { cron_id } of crons) await makeDue(cron_id);
  for (const cron of crons) await untilAdvanced(cron);
  await api.untilQuiet(threadId);
  expect((await api.runs(threadId)).map(({ status }) => status)).toEqual(["success", "success"]);
  const said = textsOf((await api.thread(threadId)).values?.messages);
  expect(said.filter((text) => text === "one" || text === "two")).toHaveLength(2);
});

test("a cron with reject leaves a busy thread alone, and one with interrupt interrupts it", async () => {
  const threadId = await api.aThread();
  const waiting = await api.aRun(threadId, {
    assistant_id: "agent",
    input: saying("late"),
    after_seconds: 3_600,
  });
  const path = `/threads/${threadId}/runs/crons`;
  const rejecting = await aCron({ multitask_strategy: "reject" }, path);
  await makeDue(rejecting.cron_id);
  await untilAdvanced(rejecting);
  expect((await api.runs(threadId)).map(({ run_id }) => run_id)).toEqual([waiting.run_id]);
  expect(await read(rejecting.cron_id)).toMatchObject({ enabled: true, error: null });
  const interrupting = await aCron({ multitask_strategy: "interrupt" }, path);
  await makeDue(interrupting.cron_id);
  await untilAdvanced(interrupting);
  await api.untilQuiet(threadId);
  expect((await api.runs(threadId)).map(({ status }) => status)).toEqual(["success", "interrupted"]);
});

test("a due cron whose previous run still waits creates no other, and the log says so once", async () => {
  const threadId = await api.aThread();
  const busy = { assistant_id: "sleep", input: { ...saying("busy"), milliseconds: 600_000 } };
  const running = await api.aRun(threadId, busy);
  await api.untilRunIs(threadId, running.run_id, "running");
  const path = `/threads/${threadId}/runs/crons`;
  const [cron, rejecting] = [await aCron({}, path), await aCron({ multitask_strategy: "reject" }, path)];
  for (let times = 0; times < 3; times += 1) {
    for (const one of [cron, rejecting]) {
      await makeDue(one.cron_id);
      await untilAdvanced(one);
    }
  }
  expect(await runsOf(cron.cron_id)).toMatchObject([{ status: "pending" }]);
  const logged = ({ cron_id }: CronRecord) =>
    server.lines.filter((line) => line.includes(cron_id) && line.includes("a cron was due while"));
  expect([logged(cron).length, logged(rejecting).length]).toEqual([1, 1]);

  await api.cancel(threadId, running.run_id, "wait=1");
  await api.untilQuiet(threadId);
  await makeDue(cron.cron_id);
  await untilAdvanced(cron);
  await api.untilQuiet(threadId);
  expect((await runsOf(cron.cron_id)).map(({ status }) => status)).toEqual(["success", "success"]);
});

test("a cron does not run a new assistant under its old assistant's id until it is enabled again", async () => {
  const anAssistant = { assistant_id: randomUUID(), graph_id: "agent" };
  await api.post("/assistants", anAssistant);
  const cron = await aCron({ assistant_id: anAssistant.assistant_id, on_run_completed: "keep" });
  await api.remove(`/assistants/${anAssistant.assistant_id}`);
  await api.post("/assistants", anAssistant);
  // A deletion leaves this state when it skips a cron that is being fired.
  await query(
    server,
    "update threadloom.crons set enabled = true, error = null, next_run_date = now() where cron_id = $1",
    [cron.cron_id],
  );
  const stopped = await eventually("the cron is disabled", async () => {
    const now = await read(cron.cron_id);
    return now.enabled === false ? now : undefined;
  });
  expect(stopped.error).toContain("not found");
  expect(await runsOf(cron.cron_id)).toEqual([]);
  await api.patch(`/runs/crons/${cron.cron_id}`, { enabled: true });
  await makeDue(cron.cron_id);
  await untilAdvanced(cron);
  expect(await runsOf(cron.cron_id)).toHaveLength(1);
});

test("one run replaces all missed times", async () => {
  const cron = await aCron({ schedule: "* * * * *", on_run_completed: "keep" });
  await makeDue(cron.cron_id, 3_600);
  const after = await eventually("the cron is advanced", async () => {
    const now = await read(cron.cron_id);
    return Date.parse(now.next_run_date ?? "") > Date.now() ? now : undefined;
  });
  expect(await runsOf(cron.cron_id)).toHaveLength(1);
  expect(after.next_run_date).toMatch(/:00\.000\+00:00$/);
  await api.remove(`/runs/crons/${cron.cron_id}`);
});

test("nothing is run after the end time of a cron, or while it is disabled", async () => {
  const ending = await aCron({ end_time: "2100-01-01T00:00:00Z", on_run_completed: "keep" });
  await query(
    server,
    `update threadloom.crons set next_run_date = now() - interval '2 seconds', end_time = now() - interval '1 second'
     where cron_id = $1`,
    [ending.cron_id],
  );
  expect(await untilAdvanced(ending)).toMatchObject({ next_run_date: null, enabled: true, error: null });
  const disabled = await aCron({ enabled: false });
  await aCron().then(async (other) => {
    await makeDue(other.cron_id);
    await untilAdvanced(other);
  });
  expect([await runsOf(ending.cron_id), await runsOf(disabled.cron_id)]).toEqual([[], []]);
});

test("a cron that can't be read any more is disabled, shows that, and does not delay others", async () => {
  const broken = [await aCron(), await aCron()];
  await query(server, `update threadloom.crons set schedule = 'soon' where cron_id = $1`, [
    broken[0]!.cron_id,
  ]);
  await query(server, `update threadloom.crons set payload = '{"stream_mode": 1}' where cron_id = $1`, [
    broken[1]!.cron_id,
  ]);
  const whole = await aCron({ on_run_completed: "keep" });
  for (const { cron_id } of [...broken, whole]) await makeDue(cron_id, 1);
  await untilAdvanced(whole);
  expect(await runsOf(whole.cron_id)).toHaveLength(1);
  for (const cron of broken)
    expect(await untilAdvanced(cron)).toMatchObject({ enabled: false, error: expect.stringMatching(/\w/) });
});

test("a cron of a graph without a host waits for a process that hosts it", async () => {
  const { assistant_id } = (await api.post<{ assistant_id: string }>("/assistants", { graph_id: "agent" }))
    .body;
  await query(server, `update threadloom.assistants set graph_id = 'elsewhere' where assistant_id = $1`, [
    assistant_id,
  ]);
  const cron = await aCron({ assistant_id, on_run_completed: "keep" });
  await makeDue(cron.cron_id, 10);
  const other = await aCron();
  await makeDue(other.cron_id);
  await untilAdvanced(other);
  expect(await runsOf(cron.cron_id)).toEqual([]);
  await query(server, `update threadloom.assistants set graph_id = 'agent' where assistant_id = $1`, [
    assistant_id,
  ]);
  await untilAdvanced(cron);
  expect(await runsOf(cron.cron_id)).toHaveLength(1);
});

test("several servers run each of many crons once", async () => {
  const CRONS = 150;
  const replicas = await Promise.all(
    [1, 2].map(() => startTestServer({ connectionString: server.connectionString })),
  );
  try {
    const metadata = { group: "many" };
    for (let index = 0; index < CRONS; index += 1) await aCron({ metadata, on_run_completed: "keep" });
    await query(
      server,
      `update threadloom.crons set next_run_date = now() where metadata @> '{"group": "many"}'`,
    );
    await eventually("all of them are advanced", async () => {
      const [row] = await query<{ due: string }>(
        server,
        `select count(*) as due from threadloom.crons where metadata @> '{"group": "many"}' and next_run_date <= now()`,
      );
      return row?.due === "0";
    });
    const runs = (await api.post<RunRecord[]>("/runs/search", { metadata, limit: 1_000 })).body;
    expect(new Set(runs.map((run) => run.metadata["cron_id"])).size).toBe(CRONS);
    expect(runs).toHaveLength(CRONS);
  } finally {
    await Promise.all(replicas.map((replica) => replica.close()));
  }
});

test("a process that only answers requests leaves crons to a process with a worker", async () => {
  const quiet = await startTestServer({ role: "api" });
  try {
    const { body: cron } = await apiOf(quiet).post<CronRecord>("/runs/crons", {
      assistant_id: "agent",
      schedule: RARELY,
    });
    const past = "2020-01-01T00:00:00.000+00:00";
    await query(quiet, "update threadloom.crons set next_run_date = $1", [past]);
    // A change wakes the server that runs crons.
    const changed = await apiOf(quiet).patch<CronRecord>(`/runs/crons/${cron.cron_id}`, {
      metadata: { a: 1 },
    });
    expect(changed.body.next_run_date).toBe(past);
    const working = await startTestServer({ connectionString: quiet.connectionString });
    try {
      await eventually("the cron is advanced", async () => {
        const { body } = await apiOf(working).get<CronRecord>(`/runs/crons/${cron.cron_id}`);
        return body.next_run_date !== past;
      });
    } finally {
      await working.close();
    }
    expect(quiet.lines.filter((line) => line.includes("make up") || line.includes("makes up"))).toEqual([]);
  } finally {
    await quiet.close();
  }
});
