import { randomBytes } from "node:crypto";
import { afterEach, describe, expect, test } from "vitest";
import { openDatabase } from "../../src/platform/database/database.ts";
import type { StopReason } from "../../src/engine/executors/executor.ts";
import type { Execution } from "../../src/engine/attempt/execution.ts";
import { DEFAULT_SCHEMA } from "../../src/platform/database/schema.ts";
import { createHeartbeat } from "../../src/engine/lease/heartbeat.ts";
import { createQueue } from "../../src/engine/queue/queue.ts";
import { apiOf } from "../helpers/api.ts";
import { startTestServer, type TestServer, type TestServerOptions } from "../helpers/app.ts";
import { eventually } from "../helpers/conditions.ts";
import { listeningLogger } from "../helpers/parts.ts";
import { query } from "../helpers/query.ts";
import { spawnServer } from "../helpers/server-process.ts";
import { ENGINE_GRAPHS } from "./graphs/config-file.ts";
import { isAtGate, openGate } from "../fixtures/gates.ts";

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});
const start = async (options: TestServerOptions): Promise<TestServer> => {
  const server = await startTestServer({ graphConfigFile: ENGINE_GRAPHS, ...options });
  closers.push(() => server.close());
  return server;
};

const attemptsOf = async (server: TestServer, ...runIds: string[]) =>
  await query<{ status: string; attempt: number }>(
    server,
    "select status, attempt from threadloom.runs where run_id = any($1::uuid[]) order by created_at",
    [runIds],
  );

const untilRenewed = async (server: TestServer, runId: string): Promise<void> => {
  const leaseOf = async (): Promise<number> => {
    const [row] = await query<{ lease_until: Date }>(
      server,
      "select lease_until from threadloom.runs where run_id = $1",
      [runId],
    );
    return row?.lease_until.getTime() ?? 0;
  };
  const before = await leaseOf();
  await eventually("the lease is renewed", async () => (await leaseOf()) > before);
};

const beats = (server: TestServer) =>
  query<{ pid: number }>(
    server,
    `select pid from pg_stat_activity
     where application_name = 'threadloom heartbeat' and datname = current_database()`,
  );

describe("a blocked event loop", () => {
  const LEASES = { LEASE_SECONDS: "6" };
  /** This process answers and looks for lost runs, while another process executes them and is blocked. */
  const startPair = async (environment: Record<string, string>) => {
    const server = await start({ role: "api", leaseSeconds: 6, heartbeatSeconds: 0.4, sweepSeconds: 0.3 });
    const worker = spawnServer(["--config", ENGINE_GRAPHS, "--port", "0"], {
      DATABASE_URL: server.connectionString,
      ROLE: "worker",
      LOG_LEVEL: "debug",
      ...LEASES,
      ...environment,
    });
    closers.push(() => worker.kill());
    await worker.address();
    return { server, api: apiOf(server), worker };
  };

  test("for longer than a lease keeps its runs, both the blocked ones and the blocking one", async () => {
    const { server, api } = await startPair({});
    const threads = [await api.aThread(), await api.aThread()] as const;
    const beside = await api.aRun(threads[0], { assistant_id: "sleep", input: { milliseconds: 1_000 } });
    const blocking = await api.aRun(threads[1], {
      assistant_id: "blocking",
      input: { messages: [], milliseconds: 9_000 },
    });
    await api.untilRunIs(threads[1], blocking.run_id, "success", "error");
    await api.untilRunIs(threads[0], beside.run_id, "success", "error");
    expect(await attemptsOf(server, beside.run_id, blocking.run_id)).toEqual([
      { status: "success", attempt: 1 },
      { status: "success", attempt: 1 },
    ]);
  });

  test("for longer than BLOCKED_LOOP_SECONDS ends its process, which names its runs; they continue elsewhere", async () => {
    const { server, api, worker } = await startPair({ BLOCKED_LOOP_SECONDS: "6" });
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, {
      assistant_id: "blocking",
      input: { messages: [], milliseconds: 600_000, attempts: 1 },
    });
    expect(await worker.exit()).toBe("SIGKILL");
    const last = worker.output().trim().split("\n").at(-1) ?? "";
    expect(JSON.parse(last)).toMatchObject({
      level: 60,
      runs: [run.run_id],
      msg: "the event loop was blocked for 6 seconds; the process is ended",
    });
    const next = spawnServer(["--config", ENGINE_GRAPHS, "--port", "0"], {
      DATABASE_URL: server.connectionString,
      ROLE: "worker",
      ...LEASES,
    });
    closers.push(() => next.kill());
    await next.address();
    await api.untilRunIs(threadId, run.run_id, "success", "error");
    expect(await attemptsOf(server, run.run_id)).toEqual([{ status: "success", attempt: 2 }]);
    const { values } = await api.state(threadId);
    expect(values.messages?.map(({ content }) => content)).toEqual(["blocked in attempt 2"]);
  });
});

describe("a heartbeat", () => {
  test("does not delay a cancel from another process", async () => {
    const server = await start({ leaseSeconds: 300, heartbeatSeconds: 100 });
    const replica = await start({ role: "api", connectionString: server.connectionString });
    const api = apiOf(server);
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, { assistant_id: "gate", input: { label: "cancelled" } });
    await eventually("the run is at its gate", () => isAtGate("cancelled"));
    await apiOf(replica).cancel(threadId, run.run_id);
    expect(await api.run(threadId, run.run_id)).toMatchObject({ status: "interrupted" });
    expect(isAtGate("cancelled")).toBe(false);
  });

  test("continues over another connection when its own is terminated", async () => {
    const server = await start({ heartbeatSeconds: 0.2 });
    const api = apiOf(server);
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, { assistant_id: "gate", input: { label: "terminated" } });
    const [backend] = await eventually("it beats", async () => {
      const backends = await beats(server);
      return backends.length > 0 && backends;
    });
    await query(server, "select pg_terminate_backend($1)", [backend?.pid]);
    await untilRenewed(server, run.run_id);
    expect((await beats(server)).map(({ pid }) => pid)).not.toContain(backend?.pid);
    openGate("terminated");
    expect(await api.join(threadId, run.run_id)).toMatchObject({ done: ["terminated"] });
    expect(server.lines.filter((line) => line.includes("thread ended"))).toEqual([]);
  });

  test("ends with its server and its connections", async () => {
    const server = await start({});
    const replica = await startTestServer({
      graphConfigFile: ENGINE_GRAPHS,
      connectionString: server.connectionString,
      heartbeatSeconds: 0.1,
    });
    const api = apiOf(replica);
    const threadId = await api.aThread();
    await api.aRun(threadId, { assistant_id: "gate", input: { label: "closed" } });
    await eventually("it beats", async () => (await beats(server)).length > 0);
    const closing = replica.close();
    openGate("closed");
    await closing;
    await eventually("nothing beats any more", async () => (await beats(server)).length === 0);
  });
});

describe("a heartbeat's thread", () => {
  /** A heartbeat for a run that is recorded as executed here, in its first attempt. */
  const startBeating = async (
    options: { threadEntry?: URL; blockedLoopSeconds?: number; leaseSeconds?: number },
    connectAs = (server: TestServer) => Promise.resolve(server.connectionString),
  ) => {
    const server = await start({ role: "api", leaseSeconds: 3_600, sweepSeconds: 3_600 });
    const api = apiOf(server);
    const run = await api.aRun(await api.aThread(), { assistant_id: "gate", input: { label: "held" } });
    await query(
      server,
      `update threadloom.runs set status = 'running', attempt = 1, worker_id = 'dead0000-0000-4000-8000-000000000000',
         lease_until = now() + interval '2 s' where run_id = $1`,
      [run.run_id],
    );
    const { logger, lines } = listeningLogger();
    const connectionString = await connectAs(server);
    const database = openDatabase({
      connectionString,
      poolSize: 1,
      applicationName: "threadloom test",
      preparedStatements: true,
      logger,
    });
    closers.push(() => database.close());
    // In a busy server the shared connections open before the heartbeat's connection.
    await database.query("select 1");
    const shared = { renewals: 0 };
    const heartbeat = createHeartbeat({
      onReadElsewhere: () => undefined,
      queue: createQueue(database, { maxAttempts: 3, graphIds: [] }),
      shared: {
        query(...statement) {
          shared.renewals += 1;
          return database.query(...statement);
        },
      },
      connectionString,
      schema: DEFAULT_SCHEMA,
      preparedStatements: true,
      leaseSeconds: 2,
      heartbeatSeconds: 0.2,
      blockedLoopSeconds: 60,
      logger,
      ...options,
    });
    closers.push(() => heartbeat.close());
    const reasons: StopReason[] = [];
    const execution: Execution = {
      runId: run.run_id,
      threadId: run.thread_id,
      attempt: 1,
      stop: (reason) => void reasons.push(reason),
      wantValues: () => undefined,
      ended: Promise.resolve(undefined),
    };
    heartbeat.begun(execution);
    return { server, execution, heartbeat, reasons, runId: run.run_id, lines, shared };
  };
  const errorsIn = (lines: readonly string[]): string[] =>
    lines.filter((line) => line.includes('"level":50'));

  test.each([
    ["dies", 'throw new Error("out of order");', ["out of order"]],
    ["never beats", "setInterval(() => undefined, 1_000);", []],
  ])("that %s is replaced by the event loop", async (_how, program, errors) => {
    const { server, runId, reasons, lines } = await startBeating({
      threadEntry: new URL(`data:text/javascript,${encodeURIComponent(program)}`),
    });
    await untilRenewed(server, runId);
    await untilRenewed(server, runId);
    expect(reasons).toEqual([]);
    await eventually("its end is logged", () => errorsIn(lines).length >= errors.length);
    expect(errorsIn(lines)).toHaveLength(errors.length);
    for (const error of errors) expect(errorsIn(lines)[0]).toContain(error);
  });

  test("is optional: without one the event loop renews leases", async () => {
    const { server, runId } = await startBeating({ blockedLoopSeconds: 0 });
    await untilRenewed(server, runId);
    await untilRenewed(server, runId);
  });

  test("reports a lost attempt and one to be cancelled, but none that ended", async () => {
    const { server, runId, execution, heartbeat, reasons } = await startBeating({});
    await untilRenewed(server, runId);
    await query(server, "update threadloom.runs set cancel_action = 'interrupt' where run_id = $1", [runId]);
    await eventually("it is to be cancelled", () => reasons.length > 0);
    expect(reasons[0]).toEqual({ kind: "cancel", action: "interrupt" });
    await query(server, "update threadloom.runs set attempt = 2 where run_id = $1", [runId]);
    await eventually("it is lost", () => reasons.some(({ kind }) => kind === "lease-lost"));
    heartbeat.ended(execution);
    // Another attempt of the same run on the same server.
    const later: StopReason[] = [];
    heartbeat.begun({ ...execution, attempt: 2, stop: (reason) => void later.push(reason) });
    const stoppedSoFar = reasons.length;
    await eventually("the later attempt is to be cancelled", () => later.length > 0);
    expect(later.every(({ kind }) => kind === "cancel")).toBe(true);
    expect(reasons).toHaveLength(stoppedSoFar);
  });

  /** An answer may take a quarter of a lease: more than a busy machine needs. */
  const PATIENT = { leaseSeconds: 60 };

  test("renews over its own connection, and leaves the shared ones alone", async () => {
    const { server, runId, shared } = await startBeating(PATIENT);
    await untilRenewed(server, runId);
    await untilRenewed(server, runId);
    expect(shared.renewals).toBe(0);
  });

  test.each([
    ["that finds no free connection", PATIENT],
    ["that is not there, while the loop finds no free connection,", { ...PATIENT, blockedLoopSeconds: 0 }],
  ])("%s is replaced by the shared connections until it has its own again", async (_which, options) => {
    const role = `threadloom_test_${randomBytes(6).toString("hex")}`;
    const { server, runId, reasons, shared, lines } = await startBeating(options, async (startedOn) => {
      await query(startedOn, `create role ${role} login password 'secret' connection limit 2`);
      closers.push(async () => {
        await query(startedOn, `drop owned by ${role} cascade`);
        await query(startedOn, `drop role ${role}`);
      });
      await query(
        startedOn,
        `grant usage on schema threadloom to ${role}; grant all on all tables in schema threadloom to ${role}`,
      );
      const url = new URL(startedOn.connectionString);
      url.username = role;
      url.password = "secret";
      return url.href;
    });
    await untilRenewed(server, runId);
    // The limit is the existing connection, so a new one is refused with 53300.
    await query(server, `alter role ${role} connection limit 1`);
    await query(server, "select pg_terminate_backend($1)", [(await beats(server))[0]?.pid]);
    await eventually("it was refused", () => lines.some((line) => line.includes('"code":"53300"')));
    await untilRenewed(server, runId);
    await untilRenewed(server, runId);
    expect(shared.renewals).toBeGreaterThan(0);
    expect(reasons).toEqual([]);
    await query(server, `alter role ${role} connection limit 2`);
    await eventually("its own is back, and the others are left alone", async () => {
      const overShared = shared.renewals;
      await untilRenewed(server, runId);
      await untilRenewed(server, runId);
      return (await beats(server)).length > 0 && shared.renewals === overShared;
    });
  });
});
