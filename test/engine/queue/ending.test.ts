import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { apiOf, saying, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";

/*
 * The statement that ends a run records the end, and the log reports it once. A trigger on the table of runs observes every end, whichever
 * statement causes it.
 */

const WATCH = `
  create table threadloom.truly_ended (run_id uuid not null, status text);
  create function threadloom.watch_ends() returns trigger language plpgsql as $$
  begin
    if tg_op = 'DELETE' then
      insert into threadloom.truly_ended values (old.run_id, null);
    else
      insert into threadloom.truly_ended values (new.run_id, new.status);
    end if;
    return null;
  end $$;
  create trigger watch_updates after update on threadloom.runs for each row
    when (old.status in ('pending', 'running') and new.status not in ('pending', 'running'))
    execute function threadloom.watch_ends();
  create trigger watch_deletions after delete on threadloom.runs for each row
    when (old.status in ('pending', 'running')) execute function threadloom.watch_ends();`;

/** The address has no receiver, so deliveries wait in the table. */
const webhook = "/nobody-is-here";
const COUNT = { assistant_id: "counter", input: saying("hello"), webhook };
const LONG = { assistant_id: "sleep", input: { milliseconds: 600_000 }, webhook };

let server: TestServer;
let api: Api;
/** Executes nothing: runs created there wait until the other server takes them. */
let front: TestServer;
beforeAll(async () => {
  server = await startTestServer({ sweepSeconds: 0.2, runTimeoutSeconds: 3 });
  front = await startTestServer({ role: "api", connectionString: server.connectionString });
  api = apiOf(server);
  await query(server, WATCH);
});
beforeEach(async () => {
  await query(server, "truncate threadloom.truly_ended, threadloom.deliveries");
});
afterEach(async () => {
  await api.post("/runs/cancel", { status: "all" });
});
afterAll(async () => {
  await front.close();
  await server.close();
});

const linesOf = (runId: string): { run_id: string; status: string }[] =>
  [...server.lines, ...front.lines]
    .map((line) => JSON.parse(line) as { msg: string; run_id: string; status: string })
    .filter(({ msg, run_id }) => msg === "run ended" && run_id === runId);

/** Runs by id with their kind of end: the recorded, logged and actual ends must be the same. */
const expectEnds = async (expected: Record<string, string>): Promise<void> => {
  const ids = Object.keys(expected);
  await eventually("all of them have ended", async () => {
    const rows = await query<{ run_id: string }>(server, "select run_id from threadloom.truly_ended");
    return ids.every((id) => rows.some((row) => row.run_id === id));
  });
  const recorded = await query<{ run_id: string; status: string }>(
    server,
    "select run_id, run_status as status from threadloom.deliveries",
  );
  const trulyEnded = await query<{ run_id: string; status: string | null }>(
    server,
    "select run_id, status from threadloom.truly_ended",
  );
  // Each end once, and no others.
  expect(recorded.map((row) => row.run_id).sort()).toEqual(trulyEnded.map((row) => row.run_id).sort());
  expect(Object.fromEntries(recorded.map((row) => [row.run_id, row.status]))).toEqual(expected);
  for (const { run_id: runId, status } of trulyEnded) {
    if (status !== null) expect(expected[runId]).toBe(status);
  }
  for (const id of ids) {
    await eventually(`the end of ${id} is published`, () => Promise.resolve(linesOf(id).length > 0));
    expect(linesOf(id)).toMatchObject([{ status: expected[id] }]);
  }
};

const twoRuns = async (threadId: string): Promise<{ running: string; waiting: string }> => {
  const running = await api.aRun(threadId, LONG);
  await api.untilRunIs(threadId, running.run_id, "running");
  const waiting = await api.aRun(threadId, COUNT);
  return { running: running.run_id, waiting: waiting.run_id };
};

describe("a run's end is recorded with it, and published once:", () => {
  test.each([
    ["success", COUNT],
    ["error", { ...COUNT, assistant_id: "failing" }],
    ["timeout", LONG],
  ])("%s", async (status, fields) => {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, fields);
    await expectEnds({ [run.run_id]: status });
    const [recorded] = await query<{ error: object | null }>(
      server,
      "select error from threadloom.deliveries",
    );
    expect(recorded?.error === null).toBe(status === "success");
  });

  test.each([
    ["interrupt", "interrupted"],
    ["rollback", "rolled-back"],
  ])("cancelled by %s, running and waiting", async (action, status) => {
    const threadId = await api.aThread();
    const { running, waiting } = await twoRuns(threadId);
    await api.cancel(threadId, waiting, `wait=1&action=${action}`);
    await api.cancel(threadId, running, `wait=1&action=${action}`);
    await expectEnds({ [running]: status, [waiting]: status });
  });

  test.each([
    ["interrupt", "interrupted"],
    ["rollback", "rolled-back"],
  ])("replaced by another one, by %s", async (strategy, status) => {
    const threadId = await api.aThread();
    const { running, waiting } = await twoRuns(threadId);
    const next = await api.aRun(threadId, { ...COUNT, multitask_strategy: strategy });
    await expectEnds({ [running]: status, [waiting]: status, [next.run_id]: "success" });
  });

  test("withdrawn while it waits", async () => {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, { ...COUNT, after_seconds: 3_600 });
    await api.remove(`/threads/${threadId}/runs/${run.run_id}`);
    await expectEnds({ [run.run_id]: "rolled-back" });
  });

  test("deleted with its thread, running and waiting; one that had ended does not end again", async () => {
    const threadId = await api.aThread();
    await api.aFinishedRun(threadId, COUNT);
    await query(server, "truncate threadloom.truly_ended, threadloom.deliveries");
    const { running, waiting } = await twoRuns(threadId);
    await api.remove(`/threads/${threadId}`);
    await expectEnds({ [running]: "deleted", [waiting]: "deleted" });
  });

  test("deleted with its assistant and the assistant's threads", async () => {
    const { body } = await api.post<{ assistant_id: string }>("/assistants", { graph_id: "sleep" });
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, { ...LONG, assistant_id: body.assistant_id });
    await api.remove(`/assistants/${body.assistant_id}?delete_threads=true`);
    await expectEnds({ [run.run_id]: "deleted" });
  });

  test.each([
    ["error", null, 2],
    ["interrupted", "interrupt", 0],
    ["rolled-back", "rollback", 0],
  ])("given up by the process that lost it: %s", async (status, cancelAction, lostAttempts) => {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, { ...COUNT, after_seconds: 3_600 });
    await query(
      server,
      `update threadloom.runs set status = 'running', attempt = 3, lost_attempts = $2, worker_id = 'dead0000-0000-4000-8000-000000000000',
         cancel_action = $3, started_at = now(), lease_until = now() - interval '1 minute' where run_id = $1`,
      [run.run_id, lostAttempts, cancelAction],
    );
    await expectEnds({ [run.run_id]: status });
  });
});

describe("the end of a run without a thread is recorded and published, too:", () => {
  const idOf = (headers: Headers): string => headers.get("content-location")?.split("/").at(-1) ?? "";

  test.each([
    ["that leaves nothing behind", {}, "success"],
    ["that stays", { on_completion: "keep" }, "success"],
    ["that fails", { assistant_id: "failing" }, "error"],
  ])("%s", async (_, fields, status) => {
    const { headers } = await api.post("/runs/wait", { ...COUNT, ...fields });
    await expectEnds({ [idOf(headers)]: status });
  });

  test("executed by one process, and read by its creator at another", async () => {
    const { headers } = await apiOf(front).post("/runs/wait", COUNT);
    await expectEnds({ [idOf(headers)]: "success" });
  });

  test.each([
    ["interrupt", "interrupted"],
    ["rollback", "rolled-back"],
  ])("cancelled by %s, running or waiting", async (action, status) => {
    const running = (await api.post<{ run_id: string }>("/runs", LONG)).body;
    const waiting = (await api.post<{ run_id: string }>("/runs", { ...LONG, after_seconds: 3_600 })).body;
    await api.post(`/runs/cancel?action=${action}`, { run_ids: [running.run_id, waiting.run_id] });
    await expectEnds({ [running.run_id]: status, [waiting.run_id]: status });
  });
});

test("an end whose record can't be stored does not happen", async () => {
  const threadId = await api.aThread();
  const run = await api.aRun(threadId, { ...COUNT, after_seconds: 3_600 });
  await query(
    server,
    `create function threadloom.refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$;
     create trigger refuse before insert on threadloom.deliveries
       for each row execute function threadloom.refuse();`,
  );
  try {
    expect((await api.cancel(threadId, run.run_id, "wait=0")).status).toBe(500);
    expect((await api.remove(`/threads/${threadId}`)).status).toBe(500);
    expect(await api.untilRunIs(threadId, run.run_id, "pending")).toMatchObject({ status: "pending" });
  } finally {
    await query(server, "drop trigger refuse on threadloom.deliveries");
  }
});
