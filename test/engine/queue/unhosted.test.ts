import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { openHosting } from "../../../src/engine/queue/hosting.ts";
import { listeningLogger } from "../../helpers/parts.ts";
import { openQueue, type OpenQueue } from "./open-queue.ts";

/** The graphs in the table of workers, statement by statement. */

let opened: OpenQueue;
beforeAll(async () => {
  opened = await openQueue();
});
afterAll(() => opened.close());
beforeEach(async () => {
  await opened.database.query("delete from threadloom.runs");
  await opened.database.query("delete from threadloom.workers");
});

const hosting = (graphIds: string[] | undefined, processId = newId()) =>
  openHosting(opened.database, processId, graphIds, listeningLogger().logger);
const aWorker = async (graphIds: string[], secondsAgo: number): Promise<string> => {
  const workerId = newId();
  await opened.database.query(
    `insert into threadloom.workers (worker_id, graph_ids, seen_at) values ($1, $2, now() - make_interval(secs => $3))`,
    [workerId, graphIds, secondsAgo],
  );
  return workerId;
};
const workers = async (): Promise<string[]> =>
  (await opened.database.query<{ worker_id: string }>("select worker_id from threadloom.workers")).map(
    ({ worker_id }) => worker_id,
  );
const waits = (graph: string, more: object = {}) => opened.aRun({ graph, status: "pending", ...more });

test("runs that wait for a graph of no living worker are counted by graph", async () => {
  await aWorker(["hosted", "also hosted"], 10);
  await aWorker(["silent"], 20);
  for (const graph of ["zeta", "alpha", "silent", "hosted", "also hosted", "zeta", "zeta"])
    await waits(graph);
  // These are not counted: they wait for another run of their thread, or not at all.
  await waits("zeta", { behind: true });
  for (const graph of ["aaa behind only", "behind only"]) await waits(graph, { behind: true });
  await opened.aRun({ graph: "zeta", status: "running" });
  await opened.aRun({ graph: "runs only", status: "running" });
  await opened.aRun({ graph: "aaa ended only", status: "success" });
  const { listUnhosted, close } = await hosting(undefined);
  expect(await listUnhosted()).toEqual([
    { graph_id: "alpha", runs: 1 },
    { graph_id: "silent", runs: 1 },
    { graph_id: "zeta", runs: 3 },
  ]);
  await close();
});

test("without any worker all waiting runs are counted, and nothing else", async () => {
  await waits("alpha");
  const { listUnhosted, close } = await hosting(undefined);
  expect(await listUnhosted()).toEqual([{ graph_id: "alpha", runs: 1 }]);
  await close();
});

test("none are counted while nothing waits", async () => {
  const { listUnhosted, close } = await hosting(["test"]);
  expect(await listUnhosted()).toEqual([]);
  await close();
});

test("a worker is listed from its opening until it is closed; others are removed after an hour", async () => {
  const silent = await aWorker(["test"], 3_500);
  await aWorker(["test"], 3_700);
  const here = newId();
  const { close } = await hosting(["test"], here);
  expect((await workers()).sort()).toEqual([silent, here].sort());
  await close();
  expect(await workers()).toEqual([silent]);
});
