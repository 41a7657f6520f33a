import { afterEach, expect, test } from "vitest";
import { addressesOf, Client } from "../../../src/platform/database/addresses.js";
import { openDatabase } from "../../../src/platform/database/database.ts";
import { openSignals, type Signal } from "../../../src/platform/database/signals.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { eventually } from "../../helpers/conditions.ts";
import { listeningLogger } from "../../helpers/parts.ts";
import { startServerPair } from "../../helpers/server-pair.ts";

/** The addresses of a primary and its standby. */

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** The address that a connection reaches. */
const reached = async (connectionString: string): Promise<string | undefined> => {
  const client = new Client({ connectionString });
  await client.connect();
  await client.end();
  return client.address;
};

test("after the death of a primary, statements and signals go to its standby", async () => {
  const pair = await startServerPair();
  closers.push(() => pair.close());
  const several = await pair.create("app");
  const [atPrimary, atStandby] = addressesOf(several) as [string, string];
  const reversed = [atStandby, atPrimary].join();
  // The standby is left, although it answers.
  await expect(reached(reversed)).rejects.toMatchObject({ code: "57P03" });
  expect(await reached(reversed)).toBe(atPrimary);
  const { logger } = listeningLogger();
  const database = openDatabase({
    connectionString: several,
    poolSize: 3,
    applicationName: "threadloom test",
    preparedStatements: true,
    logger,
  });
  closers.push(() => database.close());
  await database.query("create table kept (id int)");
  await database.query("insert into kept values (1)");
  const signals = await openSignals({ database, connectionString: several, processId: newId(), logger });
  closers.push(() => signals.close());
  const received: Signal[] = [];
  signals.subscribe((signal) => void received.push(signal));
  await pair.failOver();
  const rows = await eventually("the standby takes writes", async () =>
    database.query("insert into kept values (2) returning id").catch(() => undefined),
  );
  expect(rows).toEqual([{ id: 2 }]);
  expect(await database.query("select id from kept order by id")).toEqual([{ id: 1 }, { id: 2 }]);
  await eventually("signals arrive", () => {
    signals.send({ kind: "available", threadId: newId(), runId: newId() });
    return received.length > 0;
  });
}, 60_000);
