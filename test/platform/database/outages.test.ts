import { expect, onTestFinished, test, vi } from "vitest";
import { createOutages } from "../../../src/platform/database/outages.ts";
import { apiOf } from "../../helpers/api.ts";
import { startTestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase } from "../../helpers/database.ts";
import { listeningLogger } from "../../helpers/parts.ts";
import { startTcpProxy } from "../../helpers/tcp-proxy.ts";

test("the log reports once that the database is away, and once its return and the duration", async () => {
  const fresh = await freshDatabase();
  onTestFinished(() => fresh.drop());
  let proxy = await startTcpProxy(fresh.connectionString);
  const { port } = new URL(proxy.connectionString);
  const server = await startTestServer({ connectionString: proxy.connectionString, sweepSeconds: 0.1 });
  onTestFinished(async () => {
    await server.close();
    await proxy.close();
  });
  const said = (text: string) =>
    server.lines
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ msg, level }) => String(msg).includes(text) && Number(level) >= 30);

  await proxy.close();
  await eventually("it is away", () => said("the database is away").length > 0);
  const failing = Array.from({ length: 20 }, () => server.client.get("/assistants/agent"));
  expect((await Promise.all(failing)).map(({ status }) => status)).toEqual(Array(20).fill(503));
  expect(said("back again")).toEqual([]);

  proxy = await startTcpProxy(fresh.connectionString, Number(port));
  await eventually("both are back", () => said("back again").length === 2);
  expect(said("the database is back again")).toMatchObject([{ seconds: expect.any(Number) as number }]);
  expect(said("the listening connection is back again")).toHaveLength(1);
  expect(said("the database is away")).toHaveLength(1);
});

test("an outage writes a few lines, not one for each request, connection, heartbeat and sweep", async () => {
  const fresh = await freshDatabase();
  onTestFinished(() => fresh.drop());
  let proxy = await startTcpProxy(fresh.connectionString);
  const { port } = new URL(proxy.connectionString);
  const server = await startTestServer({
    connectionString: proxy.connectionString,
    sweepSeconds: 0.1,
    leaseSeconds: 30,
    heartbeatSeconds: 1,
  });
  onTestFinished(async () => {
    proxy = await startTcpProxy(fresh.connectionString, Number(port));
    await server.close();
    await proxy.close();
  });
  const api = apiOf(server);
  const threadId = await api.aThread();
  const run = await api.aRun(threadId, { assistant_id: "sleep", input: { milliseconds: 600_000 } });
  // Only a run that is held has heartbeats.
  await api.untilRunIs(threadId, run.run_id, "running");
  // Connections for many concurrent requests, all of them lost.
  await Promise.all(Array.from({ length: 20 }, () => api.aThread()));
  const lines = () => server.lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  const since = server.lines.length;

  await proxy.close();
  const failing = Array.from({ length: 20 }, () => server.client.get("/ok?check_db=1"));
  expect((await Promise.all(failing)).map(({ status }) => status)).toEqual(Array(20).fill(503));
  const tries = (text: string) => lines().filter(({ msg }) => String(msg).includes(text)).length;
  await eventually("heartbeats failed", () => tries("leases could not be renewed") > 2);
  await eventually("sweeps failed", () => tries("ended threadless runs could not be removed") > 2);
  const loud = lines()
    .slice(since)
    .filter(({ level }) => Number(level) >= 40)
    .map(({ msg }) => String(msg));
  // A late heartbeat has a connection of its own, and reports its loss, too.
  expect(loud.length).toBeLessThanOrEqual(6);
  expect([...new Set(loud)].sort()).toEqual([
    "a database connection was lost",
    "a request can't be served at the moment",
    "leases could not be renewed",
    "the database is away, or takes no statements",
    "the listening connection was lost; reconnecting",
  ]);
});

test("a full disk is logged once, although reads succeed between the refused writes", () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const { logger, lines } = listeningLogger();
  const outages = createOutages(logger);
  const full = Object.assign(new Error("could not extend file"), { code: "53100" });
  for (let at = 0; at < 20; at += 1) {
    outages.failed(full);
    vi.advanceTimersByTime(30_000);
    outages.worked();
  }
  expect(lines).toHaveLength(1);
  vi.advanceTimersByTime(60_000);
  outages.worked();
  expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual([
    "the database is away, or takes no statements",
    "the database is back again",
  ]);
});
