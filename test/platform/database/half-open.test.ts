import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openDatabase, type Database } from "../../../src/platform/database/database.ts";
import { freshDatabase } from "../../helpers/database.ts";
import { listeningLogger } from "../../helpers/parts.ts";
import { startTcpProxy, type TcpProxy } from "../../helpers/tcp-proxy.ts";

/** Half-open connections, through which nothing arrives, and connections that only look half-open. */

const CONNECTIONS = 4;
const closers: (() => Promise<unknown>)[] = [];
let proxy: TcpProxy;
/** The address of the database without the proxy, which runs in this process. */
let directly: string;
beforeEach(async () => {
  const fresh = await freshDatabase();
  directly = fresh.connectionString;
  closers.push(() => fresh.drop());
  proxy = await startTcpProxy(fresh.connectionString);
  closers.push(() => proxy.close());
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const aPool = (connectionString: string, timeoutMs?: number): Database => {
  const database = openDatabase({
    connectionString,
    poolSize: CONNECTIONS,
    applicationName: "threadloom test",
    preparedStatements: true,
    ...(timeoutMs !== undefined && { timeoutMs }),
    logger: listeningLogger().logger,
  });
  closers.push(() => database.close());
  return database;
};

/** A pool whose connections were all used, and are half-open now. */
const aHalfOpenPool = async (timeoutMs?: number): Promise<Database> => {
  const database = aPool(proxy.connectionString, timeoutMs);
  const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => database.pool.connect()));
  for (const client of clients) client.release();
  expect(proxy.swallow()).toBe(CONNECTIONS);
  return database;
};

test("a statement and a transaction on a half-open connection are given up after about 15 seconds, not a minute", async () => {
  const database = await aHalfOpenPool();
  const startedAt = performance.now();
  const work = [
    database.query("select 1"),
    database.transaction((transaction) => transaction.query("select 1")),
    database.boundedRead("select 1"),
  ];
  for (const result of await Promise.allSettled(work))
    expect(result).toMatchObject({ status: "rejected", reason: { message: "Query read timeout" } });
  expect(performance.now() - startedAt).toBeLessThan(40_000);
});

test("when one connection does not answer, the next statements use others", async () => {
  const database = await aHalfOpenPool(3_000);
  await expect(database.query("select 1")).rejects.toThrow("Query read timeout");
  for (let statement = 0; statement < 2 * CONNECTIONS; statement += 1)
    expect(await database.query("select 1 as one")).toEqual([{ one: 1 }]);
});

test("answers that arrive while the event loop is blocked beyond their time limit are read", async () => {
  const database = aPool(directly, 3_000);
  const statement = "select 1 as one from pg_sleep(0.5)";
  await Promise.all([database.query(statement), database.query(statement), database.query(statement)]);
  const rows = await database.transaction(async (transaction) => {
    const answers = [
      transaction.query(statement),
      database.query(statement),
      database.query(statement, [], { answerMs: 2_000 }),
    ];
    await turn();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 4_000);
    return Promise.all(answers);
  });
  expect(rows).toEqual([[{ one: 1 }], [{ one: 1 }], [{ one: 1 }]]);
});

test("statements that wait for their answers need no timer each", async () => {
  const database = aPool(directly);
  const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  await database.transaction(async (transaction) => {
    const before = timers();
    const answers = Array.from({ length: 20 }, () => transaction.query("select 1 as one"));
    expect(timers() - before).toBeLessThan(2);
    expect(await Promise.all(answers)).toHaveLength(20);
  });
});
