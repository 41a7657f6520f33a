import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { addressesOf, Client } from "../../../src/platform/database/addresses.js";
import { openDatabase } from "../../../src/platform/database/database.ts";
import { findWritable } from "../../../src/platform/database/probe.ts";
import { withSessionSettings } from "../../../src/platform/database/session-settings.ts";
import { freshDatabase } from "../../helpers/database.ts";
import { freePort } from "../../helpers/free-port.ts";
import { listeningLogger } from "../../helpers/parts.ts";
import { startTcpProxy } from "../../helpers/tcp-proxy.ts";

/** Several addresses of one database. */

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const aDatabase = async (): Promise<string> => {
  const fresh = await freshDatabase();
  closers.push(() => fresh.drop());
  return fresh.connectionString;
};

const atPort = (connectionString: string, port: number): string => {
  const url = new URL(connectionString);
  url.port = String(port);
  return url.href;
};

const portOf = (connectionString: string): number => Number(new URL(connectionString).port);

/** The port of the address that a connection reaches. */
const reached = async (connectionString: string): Promise<number> => {
  const client = new Client({ connectionString });
  await client.connect();
  await client.end();
  return client.port;
};

const opened = (connectionString: string, poolSize = 3) => {
  const database = openDatabase({
    connectionString,
    poolSize,
    applicationName: "threadloom test",
    preparedStatements: true,
    logger: listeningLogger().logger,
  });
  closers.push(() => database.close());
  return database;
};

test("a comma in a password does not end an address", () => {
  const [one, other] = ["postgresql://a:b,c@one:5432/app", "postgres://a:b,postgres@other/app"];
  expect(addressesOf(`${one},${other}`)).toEqual([one, other]);
  expect(addressesOf(`${one} , ${other}`)).toEqual([one, other]);
  expect(addressesOf(one)).toEqual([one]);
});

test("connections that fail together do not skip the address that works", async () => {
  const database = await aDatabase();
  const several = [atPort(database, await freePort()), database, atPort(database, await freePort())].join();
  const pool = opened(several);
  const answers = await Promise.allSettled([1, 2, 3].map(() => pool.query("select 1")));
  for (const answer of answers)
    expect(answer).toMatchObject({ status: "rejected", reason: { code: "ECONNREFUSED" } });
  for (let count = 0; count < 5; count += 1) expect(await reached(several)).toBe(portOf(database));
  expect(await pool.query("select 1 as one")).toEqual([{ one: 1 }]);
});

test("an address that fails is left, and taken again when the next one fails", async () => {
  const database = await aDatabase();
  const [one, other] = [await startTcpProxy(database), await startTcpProxy(database)];
  const ports = [portOf(one.connectionString), portOf(other.connectionString)];
  const several = [one.connectionString, other.connectionString].join();
  expect(await reached(several)).toBe(ports[0]);
  await one.close();
  await expect(reached(several)).rejects.toMatchObject({ code: "ECONNREFUSED" });
  expect(await reached(several)).toBe(ports[1]);
  const again = await startTcpProxy(database, ports[0]);
  closers.push(() => again.close());
  expect(await reached(several)).toBe(ports[1]);
  await other.close();
  await expect(reached(several)).rejects.toMatchObject({ code: "ECONNREFUSED" });
  expect(await reached(several)).toBe(ports[0]);
});

test("settings are put into each address, and connections with other settings know which address works", async () => {
  const database = await aDatabase();
  const several = [atPort(database, await freePort()), database].join();
  expect(await findWritable(several)).toBe(database);
  const withSettings = await withSessionSettings(several);
  expect(addressesOf(withSettings)).toHaveLength(2);
  for (const address of addressesOf(withSettings)) expect(address).toContain("enable_seqscan");
  expect(await reached(withSettings)).toBe(portOf(database));
});

/** AuthenticationOk and ReadyForQuery of the protocol. */
const WELCOME = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49]);
const FATAL = Buffer.from("SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0");
const LENGTH = Buffer.from([0, 0, 0, FATAL.length + 4]);
/** As of a server that stops. */
const WELCOME_AND_END = Buffer.concat([WELCOME, Buffer.from("E"), LENGTH, FATAL]);

/** Returns the port of a server that answers each first message of a connection, and cuts the connection at the next. */
const answering = async (answer: Buffer): Promise<number> => {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => {
      socket.write(answer);
      socket.once("data", () => socket.destroy());
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closers.push(() => new Promise((resolve) => server.close(resolve)));
  return (server.address() as AddressInfo).port;
};

test("a connection that ends in the moment it opens fails like any other", async () => {
  const database = await aDatabase();
  const ends = atPort(database, await answering(WELCOME_AND_END));
  await expect(opened(ends).query("select 1")).rejects.toMatchObject({ code: "57P01" });
  const pool = opened([ends, database].join());
  await expect(pool.query("select 1")).rejects.toThrow("not queryable");
  expect(await pool.query("select 1 as one")).toEqual([{ one: 1 }]);
});

test("a connection that is lost before it was used fails like any other", async () => {
  const database = await aDatabase();
  const several = [atPort(database, await answering(WELCOME)), database].join();
  const pool = opened(several);
  await expect(pool.query("select 1")).rejects.toThrow("Connection terminated unexpectedly");
  expect(await pool.query("select 1 as one")).toEqual([{ one: 1 }]);
});

test("without an address that works, the fault of the last one is thrown", async () => {
  const ports = [await freePort(), await freePort()];
  const several = ports.map((port) => `postgresql://nobody@127.0.0.1:${port}/app`).join();
  await expect(findWritable(several)).rejects.toMatchObject({ code: "ECONNREFUSED", port: ports[1] });
});
