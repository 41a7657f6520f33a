import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Database } from "../../../src/platform/database/database.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { createEventLog, type EventLog, sweepEvents } from "../../../src/engine/events/log.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

const EVENTS = 12_000;

let fresh: FreshDatabase;
let database: Database;
let eventLog: EventLog;
beforeAll(async () => {
  fresh = await freshDatabase();
  database = openTestDatabase(fresh.connectionString, { poolSize: 3 });
  eventLog = createEventLog(database);
});
afterAll(async () => {
  await database.close();
  await fresh.drop();
});
beforeEach(() => database.query("delete from threadloom.threads"));

/** Its events are an hour old; `endedSecondsAgo` is the time of the run's last change. */
const aRun = async (status: string, events: number, endedSecondsAgo = 3_600): Promise<string> => {
  const runId = newId();
  await database.query(
    `with thread as (insert into threadloom.threads (thread_id) values (gen_random_uuid()) returning thread_id),
     run as (
       insert into threadloom.runs
         (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy, updated_at)
       select $1, thread_id, gen_random_uuid(), 'none', $2, '{}', 'enqueue', now() - make_interval(secs => $4)
       from thread)
     insert into threadloom.run_events (thread_id, run_id, seq, event, data, created_at)
     select thread_id, $1, seq, 'values', '{}', now() - interval '1 hour' + seq * interval '1 microsecond'
     from thread, generate_series(1, $3) as seq`,
    [runId, status, events, endedSecondsAgo],
  );
  return runId;
};
const eventsOf = async (runId: string): Promise<number> => {
  const [row] = await database.query<{ count: number }>(
    "select count(*)::int as count from threadloom.run_events where run_id = $1",
    [runId],
  );
  return row?.count ?? -1;
};

describe("a sweep of events", () => {
  test("removes all events older than the retention, except those of a running run", async () => {
    const goesOn = await aRun("running", 6_000);
    const ended = await aRun("success", EVENTS);
    expect(await sweepEvents(eventLog, 7_200)).toBe(0);
    expect(await sweepEvents(eventLog, 60)).toBe(EVENTS);
    expect([await eventsOf(goesOn), await eventsOf(ended)]).toEqual([6_000, 0]);
  });

  test("keeps all events of a long run until the retention after its end", async () => {
    const runId = await aRun("success", 3, 10);
    expect(await sweepEvents(eventLog, 60)).toBe(0);
    expect(await eventsOf(runId)).toBe(3);
    expect(await sweepEvents(eventLog, 5)).toBe(3);
  });

  test("removes old events without a run", async () => {
    const runId = await aRun("success", 3, 10);
    await database.query("delete from threadloom.runs where run_id = $1", [runId]);
    expect(await sweepEvents(eventLog, 60)).toBe(3);
  });

  test("skips events that another process is removing, and shares the work", async () => {
    const first = await aRun("success", 500);
    const second = await aRun("success", 500);
    const other = new pg.Client({ connectionString: fresh.connectionString });
    await other.connect();
    try {
      await other.query("begin");
      await other.query("delete from threadloom.run_events where run_id = $1", [first]);
      const swept = sweepEvents(eventLog, 60);
      // The sweep waits for no lock: 10 s are far more than it needs.
      expect(await Promise.race([swept, pause(10_000, "it waits", { ref: false })])).toBe(500);
      expect(await eventsOf(second)).toBe(0);
      await other.query("commit");
    } finally {
      await other.end();
    }
  });

  test("stops when its signal is aborted", async () => {
    await aRun("success", EVENTS);
    expect(await sweepEvents(eventLog, 60, AbortSignal.abort())).toBe(0);
  });
});
