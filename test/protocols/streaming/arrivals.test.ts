import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { SignalHandler, SignalKind } from "../../../src/platform/database/signals.ts";
import { untilExists } from "../../../src/protocols/streaming/reading/service.ts";
import { openReadAccess, type ReadAccess } from "../../../src/protocols/streaming/repository.ts";
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
const signals = {
  subscribeToThread(_threadId: string, handler: SignalHandler) {
    handlers.add(handler);
    return () => handlers.delete(handler);
  },
};
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

const waitedFor = async (owner: string) => {
  const leaving = new AbortController();
  const wait = { isOver: false, leave: () => leaving.abort() };
  void untilExists(await sightOf(owner), signals, leaving.signal).finally(() => (wait.isOver = true));
  await vi.advanceTimersByTimeAsync(0);
  return wait;
};

test("the queries of a reader that waits become rare", async () => {
  await waitedFor("bob");
  await vi.advanceTimersByTimeAsync(60_000);
  // The interval grows from a quarter of a second to 2.5 s.
  expect(asked).toBeLessThan(30);
  expect(asked).toBeGreaterThan(10);
});

test("a signal of the thread wakes all waiting readers, long after their start", async () => {
  const waits = [await waitedFor("bob"), await waitedFor("bob")];
  await vi.advanceTimersByTimeAsync(60_000);
  exists = true;
  signalled();
  await vi.advanceTimersByTimeAsync(10);
  expect(waits.map(({ isOver }) => isOver)).toEqual([true, true]);
  expect(handlers.size).toBe(0);
  expect(vi.getTimerCount()).toBe(0);
});

test("a thread of another user with many signals is not queried each time, nor a thread with other readers only", async () => {
  await waitedFor("bob");
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
  const [stays, leaves] = [await waitedFor("bob"), await waitedFor("bob")];
  leaves.leave();
  await vi.advanceTimersByTimeAsync(60_000);
  expect([stays.isOver, leaves.isOver]).toEqual([false, true]);
  exists = true;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(stays.isOver).toBe(true);
});

test("a waiting reader receives the error when the database is away", async () => {
  const wait = untilExists(await sightOf("bob"), signals, new AbortController().signal);
  await vi.advanceTimersByTimeAsync(0);
  isAway = true;
  const failure = expect(wait).rejects.toThrow("the database is away");
  await vi.advanceTimersByTimeAsync(5_000);
  await failure;
  expect(handlers.size).toBe(0);
  expect(vi.getTimerCount()).toBe(0);
});
