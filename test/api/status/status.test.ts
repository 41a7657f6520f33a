import { createServer, connect, type AddressInfo, type Server, type Socket } from "node:net";
import supertest from "supertest";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Database } from "../../../src/platform/database/database.ts";
import { createStatusRepository } from "../../../src/api/status/repository.ts";
import { createStatusRoutes } from "../../../src/api/status/routes.ts";
import { createStatusService, type StatusServiceOptions } from "../../../src/api/status/service.ts";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { aBareApp } from "../../helpers/parts.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

let fresh: FreshDatabase;
const closers: (() => Promise<unknown> | void)[] = [];
beforeEach(async () => {
  fresh = await freshDatabase();
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  await fresh.drop();
});

const open = (connectionString: string): Database => {
  const database = openTestDatabase(connectionString, { poolSize: 2 });
  closers.push(() => database.close());
  return database;
};

const aStatus = async (options: Partial<StatusServiceOptions> = {}) => {
  const database = options.database ?? open(fresh.connectionString);
  const service = createStatusService({ database, repository: createStatusRepository(database), ...options });
  const { app } = await aBareApp({ routes: [createStatusRoutes(service)] });
  await app.listen({ host: "127.0.0.1", port: 0 });
  closers.push(
    () => app.close(),
    () => service.close(),
  );
  return { client: supertest(app.server), database };
};

/** A proxy to the database that can mute connections: they stay open, but transfer nothing. */
const aProxy = async (): Promise<{ connectionString: string; mute(): void; cut(): void }> => {
  const target = new URL(fresh.connectionString);
  const sockets = new Set<Socket>();
  const proxy: Server = createServer((inside) => {
    const outside = connect(Number(target.port), target.hostname);
    for (const socket of [inside, outside]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
    }
    inside.pipe(outside);
    outside.pipe(inside);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  closers.push(async () => {
    cut();
    await new Promise((resolve) => proxy.close(resolve));
  });
  const url = new URL(target);
  url.hostname = "127.0.0.1";
  url.port = String((proxy.address() as AddressInfo).port);
  return {
    connectionString: url.href,
    mute: () => {
      for (const socket of sockets) socket.unpipe().pause();
    },
    cut,
  };
};

test("a healthy server is ok, with and without a check of the database", async () => {
  const { client } = await aStatus();
  for (const path of ["/ok", "/ok?check_db=0", "/ok?check_db=1", "/ok?check_db=true", "/ok?check_db="]) {
    const answer = await client.get(path);
    expect([path, answer.status, answer.body]).toEqual([path, 200, { ok: true }]);
  }
  expect((await client.head("/ok")).status).toBe(200);
  expect((await client.get("/ok?check_db=2")).status).toBe(422);
});

test("a server that is not ready answers 503 without a query", async () => {
  let reason: string | undefined = "is stopping";
  const { client } = await aStatus({ readiness: () => reason });
  const answer = await client.get("/ok");
  expect(answer.status).toBe(503);
  expect(answer.headers["retry-after"]).toBe("1");
  expect(answer.body).toEqual({ detail: "This server is stopping." });
  reason = undefined;
  expect((await client.get("/ok")).status).toBe(200);
});

test("a server without its database is alive but not healthy, and its metrics show that", async () => {
  const database = open("postgres://nobody@127.0.0.1:1/none");
  const { client } = await aStatus({ database });
  expect((await client.get("/ok")).status).toBe(200);
  const answer = await client.get("/ok?check_db=1");
  expect(answer.status).toBe(503);
  expect(answer.body).toEqual({ detail: "The database does not answer." });
  const metrics = await client.get("/metrics?format=json");
  expect(metrics.status).toBe(200);
  expect(metrics.body.database.up).toBe(false);
  expect(metrics.body).not.toHaveProperty("queue");
  expect((await client.get("/metrics")).text).toContain("\nthreadloom_database_up 0\n");
});

test("a server whose database accepts no writes, like a standby after a failover, is not healthy", async () => {
  const administrator = open(fresh.connectionString);
  const name = new URL(fresh.connectionString).pathname.slice(1);
  await administrator.query(`alter database ${name} set default_transaction_read_only = on`);
  // Open connections would not notice the change.
  const { client } = await aStatus({ database: open(fresh.connectionString) });
  expect((await client.get("/ok")).status).toBe(200);
  const answer = await client.get("/ok?check_db=1");
  expect([answer.status, answer.body]).toEqual([503, { detail: "The database takes no writes." }]);
  expect(answer.headers["retry-after"]).toBe("1");
});

test("a server whose database has no disk space is not healthy, and recovers as soon as there is some", async () => {
  const administrator = open(fresh.connectionString);
  const name = new URL(fresh.connectionString).pathname.slice(1);
  // Simulates a full disk: PostgreSQL refuses to write the file.
  await administrator.query(`alter database ${name} set temp_file_limit = '64kB'`);
  const { client, database } = await aStatus({ database: open(fresh.connectionString) });
  expect((await client.get("/ok")).status).toBe(200);
  const answer = await client.get("/ok?check_db=1");
  expect([answer.status, answer.body]).toEqual([
    503,
    { detail: "The database has no room left on its disk." },
  ]);
  await administrator.query(`alter database ${name} reset temp_file_limit`);
  await administrator.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
  );
  await eventually("there is room", async () => (await client.get("/ok?check_db=1")).status === 200);
  expect(await database.query("show work_mem")).not.toEqual([{ work_mem: "64kB" }]);
});

test("a full disk is named when the database can't begin a session because of it, as in PostgreSQL 15", async () => {
  const database = open(fresh.connectionString);
  const refusal =
    "do $$ begin raise exception 'could not write init file: No space left on device' using errcode = 'internal_error'; end $$";
  const full = { ...database, query: <Row>(): Promise<Row[]> => database.query<Row>(refusal) };
  const { client } = await aStatus({ database: full });
  const answer = await client.get("/ok?check_db=1");
  expect([answer.status, answer.body]).toEqual([
    503,
    { detail: "The database has no room left on its disk." },
  ]);
});

test("a database that stops answering is noticed, although its connections stay open", async () => {
  const proxy = await aProxy();
  const { client, database } = await aStatus({ database: open(proxy.connectionString) });
  closers.push(() => proxy.cut()); // closes first: the pool waits for its connections when it closes
  expect((await client.get("/ok?check_db=1")).status).toBe(200);
  proxy.mute();
  const answers = await Promise.all(
    [1, 2, 3, 4].map(async () => (await client.get("/ok?check_db=1")).status),
  );
  expect(answers).toEqual([503, 503, 503, 503]);
  // The probes share one statement, so requests can use the rest of the pool.
  expect(database.pool.totalCount).toBe(1);
  expect(database.pool.waitingCount).toBe(0);
});

test("info shows the versions, the server's features, and where it runs", async () => {
  const { client } = await aStatus({ flags: { crons: true } });
  const { body } = await client.get("/info").set("content-type", "application/json");
  expect(body).toEqual({
    version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    threadloom_version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    langgraph_js_version: expect.stringMatching(/^1\.\d+\.\d+/),
    langgraph_py_version: "",
    context: "js",
    flags: expect.objectContaining({ assistants: true, crons: true, langsmith: false }),
    host: { kind: "self-hosted", project_id: null, revision_id: null, tenant_id: null },
    metadata: {},
  });
  const [major, minor, patch] = body.version.split(".").map(Number);
  expect(major * 1e6 + minor * 1e3 + patch).toBeGreaterThanOrEqual(4_035); // Studio's gate: 0.4.35
});

test("metrics count the runs that have not ended, in both formats", async () => {
  const { client, database } = await aStatus({ workers: () => ({ max: 10, active: 3 }) });
  await database.query(
    `insert into threadloom.threads (thread_id) select gen_random_uuid() from generate_series(1, 6)`,
  );
  await database.query(
    `insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy)
     select gen_random_uuid(), thread_id, gen_random_uuid(), 'agent',
       (array['pending', 'pending', 'pending', 'running', 'success', 'error'])[row_number() over ()], '{}', 'enqueue'
     from threadloom.threads`,
  );
  const { body } = await client.get("/metrics?format=json");
  expect(body.queue).toEqual({ num_pending: 3, num_running: 1, num_unhosted: 0 });
  expect(body.workers).toEqual({ max: 10, active: 3, available: 7 });
  expect(body.database).toMatchObject({ up: true, waiting: 0 });
  expect(body.process.resident_memory_bytes).toBeGreaterThan(1e6);
  for (const value of Object.values(body.process)) expect(value).toBeGreaterThanOrEqual(0);

  const answer = await client.get("/metrics");
  expect(answer.headers["content-type"]).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect(answer.text).toContain('\nthreadloom_runs{status="pending"} 3\n');
  expect(answer.text).toContain("\nthreadloom_runs_unhosted 0\n");
  expect(answer.text).toContain("\nthreadloom_worker_slots_active 3\n");
  const lines = answer.text.split("\n").filter((line) => line !== "");
  for (const line of lines)
    expect(line).toMatch(
      /^(# (HELP|TYPE) threadloom_\w+ .+|threadloom_\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [\d.e+-]+)$/,
    );
  expect(new Set(lines.filter((line) => line.startsWith("# TYPE"))).size).toBe(
    lines.filter((line) => line.startsWith("# TYPE")).length,
  );
  expect((await client.get("/metrics?format=xml")).status).toBe(422);
});

test("metrics count the expired threads, and how long ago the first one expired", async () => {
  const { client, database } = await aStatus();
  const figures = async () => (await client.get("/metrics?format=json")).body.threads;
  expect(await figures()).toEqual({ num_expired: 0, late_seconds: 0 });
  const add = async (expires: string, unfinished = 0) =>
    await database.query(
      `insert into threadloom.threads (thread_id, ttl_strategy, ttl_minutes, expires_at, unfinished_runs)
       values (gen_random_uuid(), 'delete', 1, now() + $1::interval, $2)`,
      [expires, unfinished],
    );
  await add("1 day");
  await add("-2 days", 1);
  await add("-1 hour");
  await add("-2 hours");
  const late = await figures();
  expect(late.num_expired).toBe(2);
  expect(late.late_seconds).toBeGreaterThanOrEqual(7_200);
  expect((await client.get("/metrics")).text).toMatch(
    /\nthreadloom_threads_expired 2\n[^]*\nthreadloom_threads_expired_late_seconds [\d.]+\n/,
  );
});

test("metrics count the active crons, and how long the oldest due one is overdue", async () => {
  const { client, database } = await aStatus();
  const figures = async () => (await client.get("/metrics?format=json")).body.crons;
  expect(await figures()).toEqual({ num_scheduled: 0, num_due: 0, late_seconds: 0 });
  const add = async (next: string) =>
    await database.query(
      `insert into threadloom.crons (cron_id, assistant_id, schedule, payload, next_run_date)
       values (gen_random_uuid(), gen_random_uuid(), '0 0 1 1 *', '{}', now() + $1::interval)`,
      [next],
    );
  await add("1 day");
  expect(await figures()).toEqual({ num_scheduled: 1, num_due: 0, late_seconds: 0 });
  await add("-90 seconds");
  await database.query(
    "insert into threadloom.crons (cron_id, assistant_id, schedule, payload) values (gen_random_uuid(), gen_random_uuid(), '0 0 1 1 *', '{}')",
  );
  const late = await figures();
  expect(late).toMatchObject({ num_scheduled: 2, num_due: 1 });
  expect(late.late_seconds).toBeGreaterThanOrEqual(90);
  expect((await client.get("/metrics")).text).toMatch(
    /\nthreadloom_crons_scheduled 2\n[^]*\nthreadloom_crons_due 1\n[^]*\nthreadloom_crons_late_seconds [\d.]+\n/,
  );
});
