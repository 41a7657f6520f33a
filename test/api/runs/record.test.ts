import { expect, test } from "vitest";
import { saying, type Api } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { query } from "../../helpers/query.ts";
import { onServer } from "../../helpers/servers.ts";

/** The start, the end and the error in a run's record. */

const COUNT = { assistant_id: "counter", input: saying("hello") };

let server: TestServer;
let api: Api;
onServer({ runTimeoutSeconds: 1 }, (opened) => ({ server, api } = opened));

const times = (...iso: (string | null)[]): number[] => iso.map((time) => Date.parse(time ?? ""));

test("a successful run has its start and end times", async () => {
  const threadId = await api.aThread();
  await api.aFinishedRun(threadId, COUNT);
  const [run] = await api.runs(threadId);
  expect(run).toMatchObject({
    status: "success",
    error: null,
    graph_id: "counter",
    attempts: 1,
    lost_attempts: 0,
  });
  const [created, started, ended] = times(run!.created_at, run!.run_started_at, run!.run_ended_at);
  // The creation is timed within its transaction, the start at the transaction's beginning.
  expect(started).toBeGreaterThanOrEqual(created! - 1_000);
  expect(ended).toBeGreaterThanOrEqual(started!);
  expect(await api.run(threadId, run!.run_id)).toEqual(run);
});

test("a waiting run has no start, and a running one no end", async () => {
  const threadId = await api.aThread();
  const running = await api.aRun(threadId, { assistant_id: "sleep", input: { milliseconds: 600_000 } });
  const waiting = await api.aRun(threadId, COUNT);
  expect([running.attempts, waiting.attempts]).toEqual([1, 0]);
  expect(running).toMatchObject({ run_started_at: expect.any(String), run_ended_at: null, error: null });
  expect(waiting).toMatchObject({ run_started_at: null, run_ended_at: null, error: null });
  await api.cancel(threadId, waiting.run_id);
  await api.cancel(threadId, running.run_id);
  expect(await api.run(threadId, waiting.run_id)).toMatchObject({
    status: "interrupted",
    run_started_at: null,
    run_ended_at: expect.any(String),
  });
  expect(await api.run(threadId, running.run_id)).toMatchObject({
    run_started_at: running.run_started_at,
    run_ended_at: expect.any(String),
  });
});

test("a run that starts at once has a worker, a lease and its first attempt; a waiting one has no worker", async () => {
  const elsewhere = await api.aThread();
  const threadId = await api.aThread();
  const running = await api.aRun(threadId, { assistant_id: "sleep", input: { milliseconds: 600_000 } });
  // There would be a free slot, but no process hosts the graph.
  await query(server, "update threadloom.assistants set graph_id = 'unhosted' where graph_id = 'counter'");
  try {
    const waiting = await api.aRun(elsewhere, COUNT);
    const rows = await query(
      server,
      `select status, attempt, worker_id is not null as held, lease_until > now() as leased
       from threadloom.runs where run_id = any($1::uuid[]) order by created_at`,
      [[running.run_id, waiting.run_id]],
    );
    expect(rows).toEqual([
      { status: "running", attempt: 1, held: true, leased: true },
      { status: "pending", attempt: 0, held: false, leased: null },
    ]);
    await api.cancel(elsewhere, waiting.run_id);
  } finally {
    await query(server, "update threadloom.assistants set graph_id = 'counter' where graph_id = 'unhosted'");
    await api.cancel(threadId, running.run_id);
  }
});

test("the start of a queued run is the time of its claim", async () => {
  const threadId = await api.aThread();
  // The delay counts from the request, and a busy machine stores the run later.
  const asked = Date.now();
  const run = await api.aRun(threadId, { ...COUNT, after_seconds: 0.5 });
  const ended = await api.untilRunIs(threadId, run.run_id, "success");
  const [created, started, available] = times(ended.created_at, ended.run_started_at, ended.available_at);
  expect(available! - asked).toBeGreaterThanOrEqual(499);
  expect(available).toBeGreaterThan(created!);
  expect(started).toBeGreaterThanOrEqual(available!);
});

test("a later attempt keeps the first start", async () => {
  const threadId = await api.aThread();
  const run = await api.aRun(threadId, { ...COUNT, after_seconds: 3_600 });
  await query(
    server,
    "update threadloom.runs set started_at = '2001-01-01', attempt = 1, lost_attempts = 1, available_at = now() where run_id = $1",
    [run.run_id],
  );
  const ended = await api.untilRunIs(threadId, run.run_id, "success");
  expect(ended.run_started_at).toBe("2001-01-01T00:00:00.000+00:00");
  expect(ended).toMatchObject({ attempts: 2, lost_attempts: 1 });
  const { body } = await api.post<unknown[]>("/runs/search", {
    thread_id: threadId,
    select: ["graph_id", "attempts"],
  });
  expect(body).toEqual([{ graph_id: "counter", attempts: 2 }]);
});

test.each([
  ["failing", "error", { error: expect.any(String), message: expect.any(String) }],
  ["sleep", "timeout", { error: "RunTimeoutError", message: expect.stringContaining("1 second") }],
])("a run of the graph %s ends as %s with the reason", async (assistant_id, status, error) => {
  const threadId = await api.aThread();
  const run = await api.aRun(threadId, { assistant_id, input: { milliseconds: 600_000 } });
  const ended = await api.untilRunIs(threadId, run.run_id, "error", "timeout");
  expect(ended).toMatchObject({ status, error, run_ended_at: expect.any(String) });
  expect((await api.thread(threadId)).error).toEqual(ended.error);
});
