import { beforeEach, expect, test } from "vitest";
import type { QueueRecord } from "../../../src/api/status/schemas.ts";
import { saying, type Api } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { query } from "../../helpers/query.ts";
import { onServer } from "../../helpers/servers.ts";

/** `GET /queue`: the waiting runs by graph and by thread, and the workers. */

const COUNT = { assistant_id: "counter", input: saying("hello") };
const SLEEP = { assistant_id: "sleep", input: { milliseconds: 600_000 } };

let server: TestServer;
let api: Api;
onServer({}, (opened) => ({ server, api } = opened));
beforeEach(async () => {
  await api.post("/runs/cancel", { status: "all" });
  await query(server, "delete from threadloom.threads where unfinished_runs = 0");
});

const theQueue = async (): Promise<QueueRecord> => {
  const { status, body } = await api.get<QueueRecord>("/queue");
  expect(status).toBe(200);
  return body;
};

test("an empty queue has no waiting run, and shows the server's slots", async () => {
  const queue = await theQueue();
  expect(queue).toMatchObject({
    num_pending: 0,
    num_scheduled: 0,
    num_running: 0,
    oldest_seconds: null,
    is_complete: true,
    graphs: [],
    threads: [],
    slots: { max: 10, active: 0 },
  });
  expect(queue.servers).toEqual([
    {
      server_id: queue.slots!.server_id,
      num_running: 0,
      seen_at: expect.any(String),
      graph_ids: expect.arrayContaining(["counter", "sleep"]),
    },
  ]);
});

test("a dead server is no longer among those that can execute runs", async () => {
  await query(
    server,
    `insert into threadloom.workers (worker_id, graph_ids, seen_at)
     values ('00000000-0000-7000-8000-00000000dead', '{counter}', now() - interval '1 minute')`,
  );
  const { servers, slots } = await theQueue();
  expect(servers.map(({ server_id }) => server_id)).toEqual([slots!.server_id]);
});

test("waiting runs are counted by graph and thread, the oldest with its waiting time; scheduled runs are separate", async () => {
  const [busy, later] = [await api.aThread(), await api.aThread()];
  const running = await api.aRun(busy, SLEEP);
  const first = await api.aRun(busy, COUNT);
  await api.aRun(busy, COUNT);
  await api.aRun(later, { ...SLEEP, after_seconds: 3_600 });
  await query(
    server,
    `update threadloom.runs set created_at = now() - interval '2 minutes', available_at = now() - interval '90 seconds'
     where run_id = $1`,
    [first.run_id],
  );
  const queue = await theQueue();
  expect(queue).toMatchObject({ num_pending: 3, num_scheduled: 1, num_running: 1, is_complete: true });
  expect(queue.oldest_seconds).toBeGreaterThanOrEqual(90);
  expect(queue.oldest_seconds).toBeLessThan(120);
  expect(queue.graphs).toEqual([
    {
      graph_id: "counter",
      num_pending: 2,
      num_running: 0,
      oldest_seconds: queue.oldest_seconds,
      is_hosted: true,
    },
    { graph_id: "sleep", num_pending: 1, num_running: 1, oldest_seconds: null, is_hosted: true },
  ]);
  expect(queue.threads).toEqual([
    { thread_id: busy, graph_id: "counter", num_pending: 2, oldest_seconds: queue.oldest_seconds },
    { thread_id: later, graph_id: "sleep", num_pending: 1, oldest_seconds: null },
  ]);
  expect(queue.servers.map(({ num_running }) => num_running)).toEqual([1]);
  expect(queue.slots).toMatchObject({ active: 1 });
  await api.cancel(busy, running.run_id);
});

test("a graph without a host is distinct from the others", async () => {
  const threadId = await api.aThread();
  const run = await api.aRun(threadId, { ...COUNT, after_seconds: 3_600 });
  await query(server, "update threadloom.runs set graph_id = 'constructor' where run_id = $1", [run.run_id]);
  const queue = await theQueue();
  expect(queue.graphs).toMatchObject([{ graph_id: "constructor", num_pending: 1, is_hosted: false }]);
});
