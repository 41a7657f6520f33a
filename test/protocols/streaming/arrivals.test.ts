import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { SignalHandler, SignalKind } from "../../../src/platform/database/signals.ts";
import { createArrivals } from "../../../src/protocols/streaming/reading/arrivals.ts";
import { openReadAccess, type ReadAccess } from "../../../src/protocols/streaming/read-access.ts";
import { caller, ownersOnly } from "../../helpers/access.ts";

/** Readers that wait for threads that do not exist for them. */

const THREAD = "thread";
let exists = false;
let isAway = false;
let asked = 0;
const handlers = new Set<SignalHandler>();
const repository = {
  async exists() {
    asked += 1;
    if (isAway) throw new Error("the database is away");
    return exists;
  },
  isHidden: async () => false,
};
const signalled = (kind: SignalKind = "events"): void => {
  for (const handler of handlers) handler({ kind, threadId: THREAD, runId: "run" });
};
const arrivalsHere = () =>
  createArrivals({
    subscribeToThread(_threadId, handler) {
      handlers.add(handler);
      return () => handlers.delete(handler);
    },
  });
const sightOf = async (owner: string): Promise<ReadAccess> =>
  await openReadAccess(ownersOnly, repository, caller(owner), THREAD);

beforeEach(() => {
  vi.useFakeTimers();
  exists = false;
  isAway = false;
  asked = 0;
  handlers.clear();
});
afterEach(() => vi.useRealTimers());

const waitedFor = async (arrivals: ReturnType<typeof arrivalsHere>, owner: string) => {
  const leaving = new AbortController();
  const wait = { isOver: false, leave: () => leaving.abort() };
  void arrivals.untilExists(await sightOf(owner), leaving.signal).finally(() => (wait.isOver = true));
  await vi.advanceTimersByTimeAsync(0);
  return wait;
};

test("all readers that wait for a thread share its queries, and the queries become rare", async () => {
  const arrivals = arrivalsHere();
  for (let one = 0; one < 100; one += 1) await waitedFor(arrivals, "bob");
  expect(asked).toBe(100);
  await vi.advanceTimersByTimeAsync(60_000);
  // The interval grows from a quarter of a second to 2.5 s, and a hundred readers share each query.
  expect(asked - 100).toBeLessThan(30);
  expect(asked - 100).toBeGreaterThan(10);
});

test("each filter has a query of its own", async () => {
  const arrivals = arrivalsHere();
  for (const owner of ["ann", "bob", "ann", "bob"]) await waitedFor(arrivals, owner);
  asked = 0;
  await vi.advanceTimersByTimeAsync(500);
  expect(asked % 2).toBe(0);
  expect(asked).toBeGreaterThan(0);
  expect(asked).toBeLessThanOrEqual(4);
});

test("a signal of the thread wakes all waiting readers, long after their start", async () => {
  const arrivals = arrivalsHere();
  const waits = [await waitedFor(arrivals, "bob"), await waitedFor(arrivals, "bob")];
  await vi.advanceTimersByTimeAsync(60_000);
  exists = true;
  signalled();
  await vi.advanceTimersByTimeAsync(10);
  expect(waits.map(({ isOver }) => isOver)).toEqual([true, true]);
  expect([handlers.size, vi.getTimerCount()]).toEqual([0, 0]);
});

test("a thread of another user with many signals is not queried each time, nor a thread with other readers only", async () => {
  const arrivals = arrivalsHere();
  await waitedFor(arrivals, "bob");
  for (let time = 0; time < 6_000; time += 1) {
    signalled(time % 2 === 0 ? "events" : "follow");
    await vi.advanceTimersByTimeAsync(10);
  }
  expect(asked).toBeLessThan(60);
  await vi.advanceTimersByTimeAsync(60_000);
  asked = 0;
  for (let time = 0; time < 20; time += 1) signalled("follow-protocol");
  await vi.advanceTimersByTimeAsync(20);
  expect(asked).toBeLessThanOrEqual(1);
});

test("without a signal a thread is found within five seconds, and a reader that left is not notified", async () => {
  const arrivals = arrivalsHere();
  const [stays, leaves] = [await waitedFor(arrivals, "bob"), await waitedFor(arrivals, "bob")];
  leaves.leave();
  await vi.advanceTimersByTimeAsync(60_000);
  expect([stays.isOver, leaves.isOver]).toEqual([false, true]);
  exists = true;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(stays.isOver).toBe(true);
});

test("a waiting reader receives the error when the database is away", async () => {
  const arrivals = arrivalsHere();
  const wait = arrivals.untilExists(await sightOf("bob"), new AbortController().signal);
  await vi.advanceTimersByTimeAsync(0);
  isAway = true;
  const failure = expect(wait).rejects.toThrow("the database is away");
  await vi.advanceTimersByTimeAsync(5_000);
  await failure;
  expect([handlers.size, vi.getTimerCount()]).toEqual([0, 0]);
});
