import { afterEach, expect, test } from "vitest";
import type { RunRecord } from "../../../src/api/runs/schemas.ts";
import { startTestServer, type TestServer, type TestServerOptions } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { ENGINE_GRAPHS } from "../../engine/graphs/config-file.ts";
import { isAtGate, openGate } from "../../fixtures/gates.ts";

/** The maximum of parallel runs of a caller, and of a graph, over all servers. */

const servers: TestServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0).reverse()) await server.close();
});

const twoServers = async (options: TestServerOptions): Promise<[TestServer, TestServer]> => {
  const all = { graphConfigFile: ENGINE_GRAPHS, apiKeys: ["ann", "bob"], keyFactor: 1, ...options };
  const one = await startTestServer(all);
  servers.push(one);
  const two = await startTestServer({ ...all, connectionString: one.connectionString });
  servers.push(two);
  return [one, two];
};
const aRun = async ({ url }: TestServer, key: string, body: object): Promise<RunRecord> => {
  const answer = await fetch(`${url}/runs`, {
    method: "POST",
    headers: { "x-api-key": key, "content-type": "application/json" },
    body: JSON.stringify({ on_completion: "keep", ...body }),
  });
  expect(answer.status).toBe(200);
  return (await answer.json()) as RunRecord;
};
const running = async (server: TestServer, runs: readonly RunRecord[]): Promise<number> =>
  (
    await query(server, "select from threadloom.runs where status = 'running' and run_id = any($1::uuid[])", [
      runs.map(({ run_id }) => run_id),
    ])
  ).length;
const untilEnded = (server: TestServer, runs: readonly RunRecord[]) =>
  eventually("all have ended", async () => {
    const ended = await query(
      server,
      "select from threadloom.runs where status = 'success' and run_id = any($1::uuid[])",
      [runs.map(({ run_id }) => run_id)],
    );
    return ended.length === runs.length;
  });

test("a caller has the allowed number of parallel runs on all servers together, and another caller does not wait", async () => {
  const [one, two] = await twoServers({ runningRunsPerCaller: 2 });
  const labels = ["l1", "l2", "l3", "l4", "l5", "l6"];
  const asked = labels.map((label, index) =>
    aRun(index % 2 === 0 ? one : two, "ann", { assistant_id: "gate", input: { label } }),
  );
  const ofAnn = await Promise.all(asked);
  const ofBob = await aRun(one, "bob", { assistant_id: "counter", input: { count: 1 } });
  await untilEnded(one, [ofBob]);
  const left = new Set(labels);
  while (left.size > 0) {
    const held = await eventually("as many run as may", () => {
      const open = [...left].filter(isAtGate);
      return open.length === Math.min(2, left.size) && open;
    });
    // The previous run may not have ended yet.
    expect(await running(one, ofAnn)).toBeLessThanOrEqual(2);
    const [first = ""] = held;
    left.delete(first);
    openGate(first);
  }
  await untilEnded(one, ofAnn);
});

test("a graph has the allowed number of parallel runs of all callers together, and another graph does not wait", async () => {
  const [one, two] = await twoServers({ runningRunsByGraph: new Map([["gate", 1]]) });
  const labels = ["g1", "g2", "g3"];
  const runs: RunRecord[] = [];
  for (const [index, label] of labels.entries())
    runs.push(
      await aRun(index === 1 ? two : one, index === 1 ? "bob" : "ann", {
        assistant_id: "gate",
        input: { label },
      }),
    );
  await untilEnded(one, [await aRun(two, "ann", { assistant_id: "counter", input: { count: 1 } })]);
  const left = new Set(labels);
  while (left.size > 0) {
    const held = await eventually("one runs", () => [...left].find(isAtGate));
    expect(await running(one, runs)).toBe(1);
    left.delete(held);
    openGate(held);
  }
  await untilEnded(one, runs);
});
