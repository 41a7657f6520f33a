import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { apiOf, type Api } from "../helpers/api.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { eventually } from "../helpers/conditions.ts";
import { endLeases, PATIENT_LEASES } from "../helpers/leases.ts";
import { dataOf, openStream } from "../helpers/server-sent-events.ts";
import { ENGINE_GRAPHS } from "./graphs/config-file.ts";
import { workerProcesses } from "./worker-process.ts";

let server: TestServer;
let api: Api;
const workers = workerProcesses();
beforeAll(async () => {
  // Answers and sweeps, but executes nothing: a graph that kills its process must not kill this one.
  server = await startTestServer({
    graphConfigFile: ENGINE_GRAPHS,
    role: "api",
    ...PATIENT_LEASES,
    maxAttempts: 2,
  });
  api = apiOf(server);
});
// A server that survives would execute the runs of the next test.
afterEach(workers.end);
afterAll(async () => {
  await server.close();
});

const aWorker = () =>
  workers.start(server, {
    MAX_ATTEMPTS: "2",
    LOG_LEVEL: "info",
    BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS: "0",
  });

describe("a killed process", () => {
  test("loses its runs to others, which continue from the last checkpoint; a run that kills each process kills one server, and is given up", async () => {
    const first = await aWorker();
    const threadId = await api.aThread();
    const stream = await openStream(`${server.url}/threads/${threadId}/runs/stream`, {
      body: { assistant_id: "hesitant", input: {}, stream_mode: ["updates", "custom"] },
    });
    await stream.until(({ event }) => event === "custom");
    // The second step begins while the first one is being stored, so on a busy machine the kill can come first.
    await eventually("the first step is stored", async () => {
      const { values } = await api.state(threadId);
      return (values as { first?: number[] }).first?.[0] === 1;
    });
    const [run] = await api.runs(threadId);
    const runId = run?.run_id ?? "";
    const joined = api.join(threadId, runId);
    await first.kill();
    await endLeases(server);
    const others = [aWorker(), aWorker()];

    expect(await joined).toMatchObject({ first: [1], second: [2] });
    const events = await stream.rest();
    expect(dataOf(events, "metadata").map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect(dataOf(events, "updates")).toEqual([{ one: { first: [1] } }, { two: { second: [2] } }]);
    expect(events.map(({ id }) => id)).toEqual(events.map(({ id }) => id).sort((a = 0, b = 0) => a - b));
    expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
    expect(await api.run(threadId, runId)).toMatchObject({ status: "success" });
    expect(await api.thread(threadId)).toMatchObject({ status: "idle" });

    const deaths: unknown[] = [];
    for (const worker of await Promise.all(others))
      void worker.exit().then(async (death) => {
        // The other one is killed when the tests have ended.
        if (deaths.push(death) === 1) await endLeases(server);
      });
    const doomed = await openStream(`${server.url}/threads/${await api.aThread()}/runs/stream`, {
      body: { assistant_id: "lethal", input: { messages: [] }, stream_mode: "updates" },
    });
    const [, , doomedThread] = doomed.headers.get("content-location")?.split("/") ?? [];
    const failures = dataOf(await doomed.rest(), "error");
    expect(failures).toEqual([
      { error: expect.any(String), message: expect.stringMatching(/given up after 2 attempts/) },
    ]);
    // The second attempt has a process of its own.
    expect(deaths).toEqual(["SIGKILL"]);
    const [ended] = await api.runs(doomedThread ?? "");
    expect(ended).toMatchObject({ status: "error" });
    expect(await api.thread(doomedThread ?? "")).toMatchObject({ status: "error", error: failures[0] });
    // The thread can be used again.
    expect((await api.aRun(doomedThread ?? "", { assistant_id: "counter", input: {} })).status).toBe(
      "pending",
    );
  });
});

describe("a process that an exception ends", () => {
  test.each(["timer", "event"])(
    "has lost its runs, like a killed one: a run that throws each time ends one server, and is given up (%s)",
    async (way) => {
      const threadId = await api.aThread();
      const run = await api.aRun(threadId, { assistant_id: "faulty", input: { way } });
      const worker = await aWorker();
      expect(await worker.exit()).toBe(1);
      await endLeases(server);
      // The guilty run is among those that the process executed.
      const [, named] = /"runs":(\[.*?\]),"msg":"an exception was not caught/.exec(worker.output()) ?? [];
      expect(JSON.parse(named ?? "[]")).toContain(run.run_id);
      await aWorker();
      const ended = await api.join(threadId, run.run_id);
      expect(ended.__error__?.message).toMatch(/given up after 2 attempts/);
    },
  );
});
