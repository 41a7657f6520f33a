import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { LeaseLostError, sqlState } from "../../../src/platform/domain/errors.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { createEventLog, type EventLog, type RunEvent } from "../../../src/engine/events/log.ts";
import { forgetting } from "../../../src/engine/queue/sql/forget.ts";
import { removeEnded } from "../../../src/engine/queue/sql/remove-ended.ts";
import { openQueue, type OpenQueue, type QueuedRun } from "../queue/open-queue.ts";
import { eventually } from "../../helpers/conditions.ts";
import { isSomeWaiting } from "../../helpers/locks.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

let opened: OpenQueue;
let log: EventLog;
beforeAll(async () => {
  opened = await openQueue();
  log = createEventLog(opened.database);
});
afterAll(() => opened.close());
beforeEach(() => opened.database.query("delete from threadloom.threads"));

const ALL = { events: 100, bytes: 1_000, largeToo: true, wire: "first" } as const;
/** The run has no turn; thread-order.test.ts tests turns. */
const aRun = async (row?: QueuedRun) => ({ ...(await opened.aRun(row)), turn: 0 });
const event = (seq: number, name = "values"): RunEvent => ({ seq, event: name, data: `{"at":${seq}}` });
const seqs = (events: readonly RunEvent[] | "large"): number[] =>
  events === "large" ? [] : events.map(({ seq }) => seq);

describe("events", () => {
  test("are stored with their run, and read in order after the named one", async () => {
    const [run, other] = [await aRun(), await aRun()];
    await log.append(run, [event(2), event(0), event(1)]);
    await log.append(other, [event(0), event(7)]);
    expect(await log.read(run, -1, ALL)).toEqual([event(0), event(1), event(2)]);
    expect(await log.read(run, 0, ALL)).toEqual([event(1), event(2)]);
    expect(await log.read({ ...run, runId: newId() }, -1, ALL)).toEqual([]);
    const [stored] = await opened.database.query(
      "select distinct thread_id from threadloom.run_events where run_id = $1",
      [run.runId],
    );
    expect(stored).toEqual({ thread_id: run.threadId });
  });

  test("are read in pages of a maximum number and size; a larger event has a page of its own", async () => {
    const run = await aRun();
    const events = [event(0), event(1), event(2), event(3)];
    await log.append(run, [event(3), event(2), event(1), event(0)]);
    const bytes = events[0]?.data.length ?? 0;
    expect(seqs(await log.read(run, -1, { ...ALL, events: 2 }))).toEqual([0, 1]);
    expect(seqs(await log.read(run, -1, { ...ALL, bytes: 1 }))).toEqual([0]);
    expect(seqs(await log.read(run, -1, { ...ALL, bytes: 2 * bytes }))).toEqual([0, 1]);
    expect(seqs(await log.read(run, -1, { ...ALL, bytes: 2 * bytes + 1 }))).toEqual([0, 1]);
    // A reader without room learns only that the next event is large.
    expect(await log.read(run, -1, { ...ALL, bytes: 1, largeToo: false })).toBe("large");
    expect(seqs(await log.read(run, -1, { ...ALL, bytes, largeToo: false }))).toEqual([0]);
  });

  test.each<[string, QueuedRun]>([
    ["that another attempt has followed", { attempt: 2 }],
    ["whose run waits again", { status: "pending" }],
    ["whose run has ended", { status: "success" }],
  ])("of an attempt %s are refused", async (_, row) => {
    const run = await aRun(row);
    await aRun();
    await expect(log.append({ ...run, attempt: 1 }, [event(0)])).rejects.toThrow(LeaseLostError);
    expect(await log.read(run, -1, ALL)).toEqual([]);
  });

  test("wait for a takeover that has begun, and are then refused", async () => {
    const run = await aRun();
    let appending: Promise<void> | undefined;
    await opened.database.transaction(async (transaction) => {
      await transaction.query("update threadloom.runs set attempt = 2 where run_id = $1", [run.runId]);
      appending = log.append(run, [event(0)]);
      appending.catch(() => undefined);
      await eventually("it waits", () => isSomeWaiting((text) => opened.database.query(text)));
    });
    await expect(appending).rejects.toThrow(LeaseLostError);
    expect(await log.read(run, -1, ALL)).toEqual([]);
  });

  test("wait for the deletion of their thread without holding a lock that it needs, and are then refused", async () => {
    const run = await aRun();
    let appending: Promise<void> | undefined;
    await opened.database.transaction(async (transaction) => {
      await transaction.query("select 1 from threadloom.threads where thread_id = $1 for update", [
        run.threadId,
      ]);
      appending = log.append(run, [event(0)]);
      appending.catch(() => undefined);
      await eventually("it waits", () => isSomeWaiting((text) => opened.database.query(text)));
      await transaction.query("select 1 from threadloom.runs where run_id = $1 for update nowait", [
        run.runId,
      ]);
      await transaction.query("delete from threadloom.threads where thread_id = $1", [run.threadId]);
    });
    await expect(appending).rejects.toThrow(LeaseLostError);
  });

  /** The next inserts of events are refused with this code, and a minute passes from each look at the clock to the next. */
  const refuseForMinutes = async (code: string, times: number): Promise<() => Promise<number>> => {
    await opened.database.query("create sequence public.refusals");
    await opened.database.query(
      `create function public.refuse() returns trigger language plpgsql as $$ begin
         if nextval('public.refusals') <= ${times} then raise exception 'not now' using errcode = '${code}'; end if;
         return new;
       end $$`,
    );
    await opened.database.query(
      "create trigger refuse before insert on threadloom.run_events for each row execute function public.refuse()",
    );
    let now = performance.now();
    const clock = vi.spyOn(performance, "now").mockImplementation(() => (now += 60_000));
    onTestFinished(async () => {
      clock.mockRestore();
      await opened.database.query("drop function public.refuse cascade");
      await opened.database.query("drop sequence public.refusals");
    });
    return async () => {
      const [row] = await opened.database.query<{ tries: number }>(
        "select last_value::int as tries from public.refusals",
      );
      return row?.tries ?? 0;
    };
  };
  const DATABASE_STOPS = "57P01";
  const CANCELLED = "57014";

  test("wait for a database that is away, however long", async () => {
    const run = await aRun();
    await refuseForMinutes(DATABASE_STOPS, 3);
    await log.append(run, [event(0), event(1)]);
    expect(seqs(await log.read(run, -1, ALL))).toEqual([0, 1]);
  });

  test("wait for a database only while they are wanted", async () => {
    const run = await aRun();
    const triesOf = await refuseForMinutes(DATABASE_STOPS, 1_000);
    let tries = 0;
    const appended = log.append(run, [event(0)], () => (tries += 1) < 3);
    await expect(appended).rejects.toSatisfy((error) => sqlState(error) === DATABASE_STOPS);
    expect(await triesOf()).toBe(2);
  });

  test("are given up if the database cancels their statement for a minute", async () => {
    const run = await aRun();
    const triesOf = await refuseForMinutes(CANCELLED, 1_000);
    await expect(log.append(run, [event(0)])).rejects.toSatisfy((error) => sqlState(error) === CANCELLED);
    expect(await triesOf()).toBe(1);
  });

  test("are stored once by a database that takes minutes and answers after the limit", async () => {
    const run = await aRun();
    await opened.database.query("create sequence public.tries");
    await opened.database.query(
      `create function public.dawdle() returns trigger language plpgsql as $$ begin
         if nextval('public.tries') = 1 then perform pg_sleep(2); end if;
         return null;
       end $$`,
    );
    await opened.database.query(
      "create trigger dawdle after insert on threadloom.run_events for each statement execute function public.dawdle()",
    );
    const impatient = openTestDatabase(opened.database.connectionString, { timeoutMs: 300 });
    let now = performance.now();
    const clock = vi.spyOn(performance, "now").mockImplementation(() => (now += 60_000));
    onTestFinished(async () => {
      clock.mockRestore();
      await impatient.close();
      await opened.database.query("drop function public.dawdle cascade");
      await opened.database.query("drop sequence public.tries");
    });
    await createEventLog(impatient).append(run, [event(0), event(1)]);
    expect(await log.read(run, -1, ALL)).toEqual([event(0), event(1)]);
  });

  test("report their last id, and where the newest attempt begins", async () => {
    const [run, other] = [await aRun(), await aRun()];
    expect(await log.lastSeq(run)).toBe(-1);
    expect(await log.opening(run)).toBeUndefined();
    await log.append(run, [event(0, "metadata"), event(1), event(2, "metadata"), event(3)]);
    await log.append(other, [event(9, "metadata")]);
    expect(await log.lastSeq(run)).toBe(3);
    expect(await log.opening(run)).toEqual(event(2, "metadata"));
  });

  test("report whether all events after a given one are stored", async () => {
    const [run, other] = [await aRun(), await aRun()];
    expect(await log.hasAllAfter(run, 5)).toBe(false);
    await log.append(run, [event(5), event(6)]);
    await log.append(other, [event(3), event(9)]);
    expect(await log.hasAllAfter(run, 5)).toBe(true);
    expect(await log.hasAllAfter(run, 7)).toBe(true);
    expect(await log.hasAllAfter(run, 3)).toBe(false);
  });
});

test("events are deleted when their run is removed, rolled back or deleted with its thread", async () => {
  const runs = [await aRun(), await aRun(), await aRun(), await aRun(), await aRun()] as const;
  for (const run of runs) await log.append(run, [event(0), event(1)]);
  const [removed, rolledBack, together, deleted, kept] = runs;
  await opened.database.query("update threadloom.runs set status = 'success' where run_id = $1", [
    removed.runId,
  ]);
  await removeEnded(opened.database, removed);
  // This run is still in progress.
  await removeEnded(opened.database, kept);
  const { forgetRun, forgetRuns } = forgetting(undefined);
  await forgetRun(opened.database, rolledBack.threadId, rolledBack.runId);
  await forgetRuns(opened.database, [{ thread_id: together.threadId, run_id: together.runId }]);
  await opened.database.query("delete from threadloom.threads where thread_id = $1", [deleted.threadId]);
  const left = await opened.database.query(
    "select run_id, seq::int as seq from threadloom.run_events order by seq",
  );
  expect(left).toEqual([0, 1].map((seq) => ({ run_id: kept.runId, seq })));
});

describe("expired events", () => {
  /** A run whose last event has the age of its end. */
  const aged = async (status: string, seconds: number): Promise<string> => {
    const { runId, threadId } = await opened.aRun({ status });
    await opened.database.query(
      `with run as (
         update threadloom.runs set updated_at = now() - make_interval(secs => $3) where run_id = $2)
       insert into threadloom.run_events (thread_id, run_id, seq, event, data, created_at)
       values ($1, $2, 0, 'values', '{}', now() - make_interval(secs => $3))`,
      [threadId, runId, seconds],
    );
    return runId;
  };
  const left = async (): Promise<string[]> =>
    (
      await opened.database.query<{ run_id: string }>(
        "select run_id from threadloom.run_events order by run_id",
      )
    ).map((row) => row.run_id);

  test("are removed in batches from the oldest on, and only those after the last one seen", async () => {
    const oldest = await aged("success", 50);
    const middle = await aged("error", 40);
    const youngest = await aged("success", 30);
    const kept = [await aged("success", 5), await aged("running", 60), await aged("pending", 60)];
    const first = await log.deleteExpired(10, 1);
    expect(first.removed).toBe(1);
    expect(await left()).not.toContain(oldest);
    const since = await log.deleteExpired(35, 10, first.last);
    expect(since.removed).toBe(1);
    expect(await left()).toEqual([youngest, ...kept].sort());
    await aged("success", 55);
    expect(await log.deleteExpired(10, 10, since.last)).toMatchObject({ removed: 1 });
    expect(await left()).not.toContain(middle);
    expect(await left()).toHaveLength(kept.length + 1);
  });

  test("with equal times are removed one batch after the other", async () => {
    await Promise.all([aged("success", 50), aged("success", 50)]);
    await opened.database.query("update threadloom.run_events set created_at = '2026-01-01'");
    const first = await log.deleteExpired(10, 1);
    expect(await log.deleteExpired(10, 1, first.last)).toMatchObject({ removed: 1 });
    expect(await left()).toEqual([]);
  });
});
