import { afterEach, beforeEach, expect, test } from "vitest";
import { openDatabase, type Database } from "../../src/database/database.ts";
import { freshDatabase } from "../helpers/database.ts";
import { listeningLogger } from "../helpers/parts.ts";
import { startTcpProxy, type TcpProxy } from "../helpers/tcp-proxy.ts";

/** Connections through which nothing gets any more, and of which nobody is told. */

const CONNECTIONS = 4;
const closers: (() => Promise<unknown>)[] = [];
let proxy: TcpProxy;
beforeEach(async () => {
  const fresh = await freshDatabase();
  closers.push(() => fresh.drop());
  proxy = await startTcpProxy(fresh.connectionString);
  closers.push(() => proxy.close());
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A pool whose connections were all used, and are half-open now. */
const aHalfOpenPool = async (timeoutMs?: number): Promise<Database> => {
  const database = openDatabase({
    connectionString: proxy.connectionString,
    poolSize: CONNECTIONS,
    applicationName: "threadloom test",
    preparedStatements: true,
    ...(timeoutMs !== undefined && { timeoutMs }),
    logger: listeningLogger().logger,
  });
  closers.push(() => database.close());
  const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => database.pool.connect()));
  for (const client of clients) client.release();
  expect(proxy.swallow()).toBe(CONNECTIONS);
  return database;
};

test("a statement and a transaction on a half-open connection are given up after some 15 seconds, not a minute", async () => {
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

test("when one connection does not answer, the next statements get connections that do", async () => {
  const database = await aHalfOpenPool(3_000);
  await expect(database.query("select 1")).rejects.toThrow("Query read timeout");
  for (let statement = 0; statement < 2 * CONNECTIONS; statement += 1)
    expect(await database.query("select 1 as one")).toEqual([{ one: 1 }]);
});
