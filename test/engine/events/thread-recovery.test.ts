import { afterAll, beforeAll, expect, test } from "vitest";
import { ENGINE_GRAPHS } from "../graphs/config-file.ts";
import { workerProcesses } from "../worker-process.ts";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { endLeases, PATIENT_LEASES } from "../../helpers/leases.ts";
import { idsOf, openHub, readUntil } from "./open-hub.ts";

let server: TestServer;
let api: Api;
const workers = workerProcesses();
beforeAll(async () => {
  // Answers and sweeps, but executes nothing.
  server = await startTestServer({
    graphConfigFile: ENGINE_GRAPHS,
    role: "api",
    ...PATIENT_LEASES,
  });
  api = apiOf(server);
});
afterAll(async () => {
  await workers.end();
  await server.close();
});

const aWorker = () => workers.start(server, { BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS: "0" });

test("a thread's events continue after the executing process is killed: with the next attempt, and the next run", async () => {
  const first = await aWorker();
  const opened = await openHub(server.connectionString);
  const threadId = await api.aThread();
  const reader = opened.hub.readThread(threadId, 0, "first");
  try {
    const request = {
      assistant_id: "hesitant",
      input: {},
      stream_mode: ["updates", "custom"],
      stream_resumable: true,
    };
    const run = await api.aRun(threadId, request);
    const published = await readUntil(reader, ({ event }) => event === "custom");
    await first.kill();
    await endLeases(server);
    await aWorker();
    published.push(
      ...(await readUntil(reader, ({ event, data }) => event === "updates" && data.includes("second"))),
    );
    await api.untilRunIs(threadId, run.run_id, "success");
    const next = await api.aRun(threadId, { ...request, input: { first: [7] } });
    published.push(
      ...(await readUntil(reader, ({ runId, event }) => runId === next.run_id && event === "custom")),
    );
    await api.cancel(threadId, next.run_id);

    const ids = idsOf(published);
    expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));
    const opening = published.filter(({ event }) => event === "metadata");
    expect(opening.map(({ data }) => JSON.parse(data) as object)).toEqual([
      { run_id: run.run_id, attempt: 1 },
      { run_id: run.run_id, attempt: 2 },
      { run_id: next.run_id, attempt: 1 },
    ]);
    // A reader with an id of the first attempt gets all events after it.
    const since = ids[1] ?? 0;
    const again = opened.hub.readThread(threadId, since, "first");
    const rest = await readUntil(again, ({ threadSeq }) => threadSeq === ids.at(-1));
    again.close();
    expect(idsOf(rest)).toEqual(ids.slice(2));
  } finally {
    reader.close();
    await opened.close();
  }
});
