import { afterAll, beforeAll, expect, test } from "vitest";
import { openDatabase, type Database } from "../../../src/platform/database/database.ts";
import { openSignals, type Signal, type Signals } from "../../../src/platform/database/signals.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { listeningLogger } from "../../helpers/parts.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

let fresh: FreshDatabase;
let database: Database;
let here: Signals;
let elsewhere: Signals;
beforeAll(async () => {
  fresh = await freshDatabase();
  const { connectionString } = fresh;
  const { logger } = listeningLogger();
  database = openDatabase({
    connectionString,
    poolSize: 2,
    applicationName: "threadloom test",
    preparedStatements: true,
    logger,
  });
  const open = () => openSignals({ database, connectionString, processId: newId(), logger });
  [here, elsewhere] = [await open(), await open()];
});
afterAll(async () => {
  await here.close();
  await elsewhere.close();
  await database.close();
  await fresh.drop();
});

const events = (threadId = newId()): Signal => ({ kind: "events", threadId, runId: newId() });

/** The signals received before `last`, which is sent after all others. */
const receivedUntil = async (received: readonly Signal[], last: Signal): Promise<readonly Signal[]> =>
  await eventually("the last signal has come", () => {
    const at = received.findIndex(({ runId }) => runId === last.runId);
    return at === -1 ? undefined : received.slice(0, at);
  });

test("a signal names its kind, its thread and its run, here and in another process", async () => {
  const received: Signal[][] = [[], []];
  const stops = [here, elsewhere].map((signals, at) =>
    signals.subscribe((signal) => void received[at]?.push(signal)),
  );
  const signal: Signal = { kind: "available", threadId: newId(), runId: newId() };
  here.send(signal);
  await eventually("both have received it", () => received.every((signals) => signals.length > 0));
  for (const stop of stops) stop();
  expect(received).toEqual([[signal], [signal]]);
});

test("more signals than one notification can carry all arrive", async () => {
  const received: Signal[] = [];
  const stop = elsewhere.subscribe((signal) => void received.push(signal));
  const sent = Array.from({ length: 500 }, (): Signal => ({ ...events(), kind: "available" }));
  for (const signal of sent) here.send(signal);
  await eventually("all have come", () => received.length >= sent.length);
  stop();
  expect(received).toEqual(sent);
});

test("a subscriber of a thread receives signals of that thread only, and none after its end", async () => {
  const all: Signal[] = [];
  const [first, second]: Signal[][] = [[], []];
  const [thread, other] = [newId(), newId()];
  const stops = [
    elsewhere.subscribe((signal) => void all.push(signal)),
    elsewhere.subscribeToThread(thread, (signal) => void first?.push(signal)),
    elsewhere.subscribeToThread(thread, (signal) => void second?.push(signal)),
  ];
  const sent = [events(thread), events(other), events(thread)];
  for (const signal of sent) here.send(signal);
  const end = events();
  here.send(end);
  await receivedUntil(all, end);
  expect(first).toEqual([sent[0], sent[2]]);
  stops[1]?.();
  const later = [events(thread), events()];
  for (const signal of later) here.send(signal);
  await receivedUntil(all, later[1] as Signal);
  for (const stop of stops) stop();
  expect(first).toHaveLength(2);
  expect(second).toEqual([sent[0], sent[2], later[0]]);
});

test("a process that is alone notifies nobody, and queries the database only if it has signals to send", async () => {
  const own = await freshDatabase();
  const connection = openTestDatabase(own.connectionString);
  const statements: string[] = [];
  const counting: Database = {
    ...connection,
    query: (text, values) => {
      statements.push(/pg_notify|pg_stat_activity/.exec(text)?.[0] ?? text);
      return connection.query(text, values);
    },
  };
  const open = (over: Database) =>
    openSignals({
      database: over,
      connectionString: own.connectionString,
      processId: newId(),
      logger: listeningLogger().logger,
    });
  const first = await open(counting);
  const received: Signal[] = [];
  first.subscribe((signal) => void received.push(signal));
  const [one, two] = [events(), events()];
  first.send(one);
  await receivedUntil(received, one);
  first.send(two);
  await receivedUntil(received, two);
  expect(statements).toEqual(["pg_stat_activity"]);

  const second = await open(connection);
  const arrived: Signal[] = [];
  second.subscribe((signal) => void arrived.push(signal));
  await eventually("the first process has seen the second one", () => {
    first.send(events());
    return arrived.length > 0;
  });
  const looks = statements.filter((statement) => statement === "pg_stat_activity").length;
  await second.close();
  await eventually("the first process is alone again", async () => {
    const notified = statements.filter((statement) => statement === "pg_notify").length;
    const last = events();
    first.send(last);
    await receivedUntil(received, last);
    return statements.filter((statement) => statement === "pg_notify").length === notified;
  });
  expect(statements.filter((statement) => statement === "pg_stat_activity").length).toBeGreaterThan(looks);
  await first.close();
  await connection.close();
  await own.drop();
});
