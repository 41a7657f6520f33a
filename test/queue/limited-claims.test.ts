import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { newId } from "../../src/lib/ids.ts";
import { createQueue, type Queue } from "../../src/queue/queue.ts";
import { LOCK_FOR_COUNTING } from "../../src/queue/sql/running-limits.ts";
import { openQueue, type OpenQueue } from "./open-queue.ts";

/** Claims that count what runs, one after the other. */

const LIMITS = { perCaller: 1, keyFactor: 1, byGraph: new Map<string, number>() };

let opened: OpenQueue;
let database: Database;
beforeAll(async () => {
  opened = await openQueue();
  ({ database } = opened);
});
afterAll(() => opened.close());
beforeEach(() => database.query("delete from threadloom.threads"));

const queueOn = (over: Database): Queue =>
  createQueue(over, { maxAttempts: 3, graphIds: ["test"], runningLimits: LIMITS });

/** A server that stands still after the first statement of a transaction, until it is resumed. */
const aStoppedServer = () => {
  let resume = (): void => undefined;
  const resumed = new Promise<void>((resolve) => (resume = resolve));
  let stopped = (): void => undefined;
  const isStopped = new Promise<void>((resolve) => (stopped = resolve));
  const transaction: Database["transaction"] = (work, opening) =>
    database.transaction(async (over) => {
      const statements: string[] = [];
      return await work({
        ...over,
        async query<Row>(text: string, values?: unknown[]): Promise<Row[]> {
          if (statements.push(text) > 1) {
            stopped();
            await resumed;
          }
          return await over.query<Row>(text, values);
        },
      });
    }, opening);
  return { queue: queueOn({ ...database, transaction }), isStopped, resume };
};

test("a server that vanishes while it counts keeps others from their claims for seconds, not for hours", async () => {
  const { runId } = await opened.aRun({ status: "pending", attempt: 0 });
  const server = aStoppedServer();
  const claim = server.queue.claim(newId(), 10, 1);
  const refused = expect(claim).rejects.toThrow();
  await server.isStopped;
  try {
    expect(await queueOn(database).claim(newId(), 10, 1)).toMatchObject([{ run_id: runId }]);
  } finally {
    server.resume();
  }
  await refused;
});

test("signs of life are written while a claim counts", async () => {
  await database.transaction(async (counting) => {
    await counting.query(LOCK_FOR_COUNTING);
    // It would be refused by the lock_timeout of this database.
    await database.query("insert into threadloom.workers (worker_id, graph_ids) values ($1, '{}')", [
      newId(),
    ]);
  });
});
