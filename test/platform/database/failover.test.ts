import { afterEach, expect, test } from "vitest";
import { openDatabase } from "../../../src/platform/database/database.ts";
import { openSignals, type Signal } from "../../../src/platform/database/signals.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { eventually } from "../../helpers/conditions.ts";
import { listeningLogger } from "../../helpers/parts.ts";
import { startServerPair } from "../../helpers/server-pair.ts";

/** A primary and its standby behind one address, as any fail-over set-up has. */

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

test("after the death of a primary, statements and signals go to its standby", async () => {
  const pair = await startServerPair();
  closers.push(() => pair.close());
  const connectionString = await pair.create("app");
  const { logger } = listeningLogger();
  const database = openDatabase({
    connectionString,
    poolSize: 3,
    applicationName: "threadloom test",
    preparedStatements: true,
    logger,
  });
  closers.push(() => database.close());
  await database.query("create table kept (id int)");
  await database.query("insert into kept values (1)");
  const signals = await openSignals({ database, connectionString, processId: newId(), logger });
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
