import { expect, test } from "vitest";
import { RunChannel, readChannel, type ChannelReaderOptions } from "../../../src/engine/events/channel.ts";

/** A run executed here with this many events, and a reader of it. */
const reading = (
  { events = 0, ...options }: Partial<ChannelReaderOptions> & { events?: number } = {},
  keep = true,
) => {
  const channel = new RunChannel({
    threadId: "thread",
    runId: "run",
    attempt: 1,
    turn: 0,
    firstSeq: 0,
    keep,
  });
  const emit = (data = "") => channel.emit("values", () => data);
  for (let count = 0; count < events; count += 1) emit();
  let ended = false;
  const reader = readChannel({
    channel,
    after: -1,
    wire: "first",
    withOpening: false,
    hasEnded: () => ended,
    ...options,
  });
  const next = async () => {
    const news = await reader.next();
    return typeof news === "string" ? news : news.map(({ seq }) => seq);
  };
  const end = () => {
    ended = true;
    channel.close();
  };
  return { channel, emit, reader, next, end };
};

test("a reader gets the events after its position, then each new event, then the end", async () => {
  const { emit, next, end } = reading({ events: 3, after: 0 });
  expect(await next()).toEqual([1, 2]);
  const third = next();
  emit();
  expect(await third).toEqual([3]);
  emit();
  emit();
  const last = next();
  end();
  expect(await last).toEqual([4, 5]);
  expect(await next()).toBe("ended");
});

test("the end wakes a reader that has everything", async () => {
  const { next, end } = reading();
  const waiting = next();
  end();
  expect(await waiting).toBe("ended");
});

test("when this process stops, a reader gets the remaining events and is asked to reconnect", async () => {
  const { channel, next } = reading({ events: 1 });
  channel.close();
  expect(await next()).toEqual([0]);
  expect(await next()).toBe("lost");
});

test("a reader so far behind that events are gone is cut off", async () => {
  const { emit, next } = reading();
  for (let count = 0; count < 10; count += 1) emit("x".repeat(1024 * 1024));
  expect(await next()).toBe("lost");
});

test("a stream joined in the middle begins with the first event, once", async () => {
  const { emit, next } = reading({ events: 3, after: 2, withOpening: true });
  expect(await next()).toEqual([0]);
  emit();
  expect(await next()).toEqual([3]);
});

test("the first event is not repeated for a reader that gets it anyway", async () => {
  const { next } = reading({ events: 2, after: -1, withOpening: true });
  expect(await next()).toEqual([0, 1]);
});

test("a stream joined after its first event begins with that event", async () => {
  const { next } = reading({ events: 1, after: 0, withOpening: true });
  expect(await next()).toEqual([0]);
});

test("a reader that names its last event does not get the first one again", async () => {
  const { next } = reading({ events: 3, after: 1 });
  expect(await next()).toEqual([2]);
});

test("a run without events can be joined", async () => {
  const { emit, next } = reading({ withOpening: true });
  const first = next();
  emit();
  expect(await first).toEqual([0]);
});

test("a reader whose client has disconnected receives nothing more, and is not woken", async () => {
  const { channel, emit, reader, next } = reading();
  let woken = 0;
  const waiting = next().finally(() => (woken += 1));
  reader.close();
  expect(await waiting).toBe("ended");
  emit();
  expect(await next()).toBe("ended");
  expect(woken).toBe(1);
  expect(channel.read(-1)).toHaveLength(1);
});

test("a channel releases the readers that have left", () => {
  const channel = new RunChannel({
    threadId: "thread",
    runId: "run",
    attempt: 1,
    turn: 0,
    firstSeq: 0,
    keep: true,
  });
  const wakers = new Set<() => void>();
  channel.attach = (waker) => {
    wakers.add(waker);
    return () => wakers.delete(waker);
  };
  const reader = readChannel({
    channel,
    after: -1,
    withOpening: false,
    wire: "first",
    hasEnded: () => false,
  });
  expect(wakers.size).toBe(1);
  reader.close();
  expect(wakers.size).toBe(0);
});
