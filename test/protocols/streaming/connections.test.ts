import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  createAudiences,
  type Connections,
  type Place,
} from "../../../src/protocols/streaming/reading/connections.ts";

/** When a watching connection receives a question, depending on what the other connections of the thread have received. */

const THREAD = "thread";
const flushed = (): boolean => true;

let audiences: Connections;
beforeEach(() => {
  vi.useFakeTimers();
  audiences = createAudiences();
});
afterEach(() => vi.useRealTimers());

const watcher = (): Place =>
  audiences.join(THREAD, { isWatcher: true, hasFlushed: flushed, openedAt: performance.now() });
const reader = (hasFlushed = flushed): Place =>
  audiences.join(THREAD, { isWatcher: false, hasFlushed, openedAt: performance.now() });

/** Whether a watcher receives the question of a turn after this many more milliseconds. */
const question = (place: Place, turn: number) => {
  let isSent = false;
  void place.whenDataTaken(turn, new AbortController().signal).then(() => (isSent = true));
  return async (milliseconds: number): Promise<boolean> => {
    await vi.advanceTimersByTimeAsync(milliseconds);
    return isSent;
  };
};

describe("a question", () => {
  test("waits for the connection that the client of a new run is about to open", async () => {
    const place = watcher();
    place.began(1);
    const isToldAfter = question(place, 1);
    expect(await isToldAfter(1_900)).toBe(false);
    expect(await isToldAfter(200)).toBe(true);
  });

  test("does not wait if the run began long ago and its data have no reader", async () => {
    const place = watcher();
    place.began(1);
    await vi.advanceTimersByTimeAsync(2_001);
    expect(await question(place, 1)(0)).toBe(true);
  });

  test("waits until all data were delivered to their readers and forwarded", async () => {
    const place = watcher();
    let isFlushed = false;
    const data = reader(() => isFlushed);
    place.began(1);
    const isToldAfter = question(place, 1);
    expect(await isToldAfter(500)).toBe(false);
    data.reached(1);
    expect(await isToldAfter(500)).toBe(false);
    isFlushed = true;
    expect(await isToldAfter(15)).toBe(false);
    expect(await isToldAfter(25)).toBe(true);
  });

  test("gives a client the same time for its data that it needed to open their connection", async () => {
    const place = watcher();
    place.began(1);
    const isToldAfter = question(place, 1);
    await vi.advanceTimersByTimeAsync(400);
    reader().reached(1);
    expect(await isToldAfter(390)).toBe(false);
    expect(await isToldAfter(20)).toBe(true);
  });

  test("waits two seconds for a client that does not read, and not for one that leaves", async () => {
    const place = watcher();
    const slow = reader();
    const isToldAfter = question(place, 1);
    expect(await isToldAfter(1_990)).toBe(false);
    expect(await isToldAfter(20)).toBe(true);
    const other = question(place, 2);
    reader().reached(2);
    slow.leave();
    expect(await other(30)).toBe(true);
  });

  test("is sent at once on a connection that also receives data: there the order suffices", async () => {
    const place = reader();
    reader();
    expect(await question(place, 1)(0)).toBe(true);
  });
});

describe("the end of a run that ended just now", () => {
  test("is sent at once to the first reader, and to no other", () => {
    const first = reader();
    expect(first.awaitsEnd(1)).toBe(true);
    first.endSent(1);
    expect(reader().awaitsEnd(1)).toBe(false);
    expect(reader().awaitsEnd(2)).toBe(true);
  });
});
