import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { RunRecord } from "../../src/api/runs/schemas.ts";
import { apiOf, type Api, type Result } from "../helpers/api.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { eventually, leastOf, millisecondsOf } from "../helpers/conditions.ts";
import { query } from "../helpers/query.ts";
import { openStream } from "../helpers/server-sent-events.ts";
import { ENGINE_GRAPHS } from "./graphs/config-file.ts";
import { isAtGate, openGate } from "../fixtures/gates.ts";

const SLOTS = 2;

let server: TestServer;
let api: Api;
beforeAll(async () => {
  server = await startTestServer({ graphConfigFile: ENGINE_GRAPHS, jobsPerWorker: SLOTS });
  api = apiOf(server);
});
afterEach(async () => {
  await api.post("/runs/cancel", { status: "all" });
  await eventually("nothing runs", async () => (await statuses()).every((status) => status !== "running"));
});
afterAll(() => server.close());

const statuses = async (): Promise<string[]> =>
  (await query<{ status: string }>(server, "select status from threadloom.runs order by created_at")).map(
    ({ status }) => status,
  );
const held = async (label: string): Promise<RunRecord> =>
  await api.aRun(await api.aThread(), { assistant_id: "gate", input: { label } });
const atGate = (label: string) => eventually(`${label} is at its gate`, () => isAtGate(label));

/** A run found by the poll once a second would take this long. */
const FOUND_BY_LOOKING_MS = 900;

describe("the slots of a process", () => {
  test("limit its parallel runs; the others wait and follow in order", async () => {
    const labels = ["a1", "a2", "a3", "a4", "a5"];
    const runs: RunRecord[] = [];
    for (const label of labels) runs.push(await held(label));
    for (const first of ["a1", "a2"]) await atGate(first);
    expect(await statuses()).toEqual(["running", "running", "pending", "pending", "pending"]);
    expect(labels.filter(isAtGate)).toEqual(["a1", "a2"]);
    openGate("a1");
    await atGate("a3");
    expect(labels.filter(isAtGate)).toEqual(["a2", "a3"]);
    openGate("a3");
    await atGate("a4");
    openGate("a2");
    await atGate("a5");
    openGate("a4");
    openGate("a5");
    for (const run of runs) await api.untilRunIs(run.thread_id, run.run_id, "success");
  });

  test.each(["wait", "stream"])(
    "start a run that is requested with %s as soon as one is free",
    async (way) => {
      await held("b2");
      const body = { assistant_id: "counter", input: { count: 1 }, stream_mode: "values" };
      const ask = (): Promise<unknown> =>
        way === "wait"
          ? api.post<Result>("/runs/wait", body).then((answer) => answer.body["count"])
          : openStream(`${server.url}/runs/stream`, { body }).then(async (stream) => {
              const last = (await stream.rest()).at(-1);
              return (last?.data as Result)["count"];
            });
      const waitedMs = await leastOf(FOUND_BY_LOOKING_MS, async () => {
        await held("b1");
        for (const label of ["b1", "b2"]) await atGate(label);
        const asked = ask();
        await eventually("it waits", async () => (await statuses()).includes("pending"));
        return await millisecondsOf(async () => {
          openGate("b1");
          expect(await asked).toBe(2);
        });
      });
      expect(waitedMs).toBeLessThan(FOUND_BY_LOOKING_MS);
      openGate("b2");
    },
  );

  test("are free again after runs that were cancelled, that failed, and that were rolled back", async () => {
    for (let round = 0; round < 3; round += 1) {
      for (const query of ["wait=1", "wait=1&action=rollback"]) {
        const run = await held(`c${round}`);
        await atGate(`c${round}`);
        await api.cancel(run.thread_id, run.run_id, query);
      }
    }
    // Waits for both, because a run created during a poll of the queue may be stored as pending first.
    for (const label of ["d1", "d2"]) await held(label);
    for (const label of ["d1", "d2"]) await atGate(label);
  });

  test("of another process take runs for which this one has no free slot", async () => {
    const replica = await startTestServer({
      graphConfigFile: ENGINE_GRAPHS,
      jobsPerWorker: SLOTS,
      connectionString: server.connectionString,
    });
    try {
      for (const label of ["e1", "e2", "e3", "e4", "e5"]) await held(label);
      for (const label of ["e1", "e2", "e3", "e4"]) await atGate(label);
      expect(isAtGate("e5")).toBe(false);
      const workers = await query<{ workers: number }>(
        server,
        "select count(distinct worker_id)::int as workers from threadloom.runs where status = 'running'",
      );
      expect(workers).toEqual([{ workers: 2 }]);
      openGate("e3");
      await atGate("e5");
    } finally {
      await api.post("/runs/cancel", { status: "all" });
      await replica.close();
    }
  });

  test("can be 0: a process that only answers executes nothing", async () => {
    const quiet = await startTestServer({ graphConfigFile: ENGINE_GRAPHS, role: "api" });
    try {
      const run = await apiOf(quiet).aRun(await apiOf(quiet).aThread(), {
        assistant_id: "counter",
        input: {},
      });
      expect(run.status).toBe("pending");
      const worker = await startTestServer({
        graphConfigFile: ENGINE_GRAPHS,
        connectionString: quiet.connectionString,
      });
      try {
        // The run was waiting when the worker opened, which finds it at its start.
        expect(await apiOf(quiet).join(run.thread_id, run.run_id)).toMatchObject({ count: 1 });
      } finally {
        await worker.close();
      }
    } finally {
      await quiet.close();
    }
  });
});
