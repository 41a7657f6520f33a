import { afterEach, expect, test, vi } from "vitest";
import type { SentEvent } from "../../../src/engine/events/transports/event-sink.ts";
import type { ThreadEvent } from "../../../src/protocols/streaming/reading/frames.ts";
import { mergeReaders, type Sent } from "../../../src/protocols/streaming/reading/merged-reader.ts";

/** The events of several subscriptions of one connection, in one order. */

afterEach(() => {
  vi.useRealTimers();
});

const event = (seq: number): ThreadEvent => ({
  seq,
  eventId: String(seq),
  method: "values",
  namespace: [],
  params: "{}",
});

/** A subscription that receives the test's events. */
const aSubscription = () => {
  const news: (Sent | "lost")[] = [];
  let wake: () => void = () => undefined;
  let isClosed = false;
  return {
    publish(upTo: number, ...seqs: number[]): void {
      news.push({ events: seqs.map(event), upTo });
      wake();
    },
    isClosed: () => isClosed,
    async next(): Promise<Sent | "ended" | "lost"> {
      for (;;) {
        if (isClosed) return "ended";
        const sent = news.shift();
        if (sent !== undefined) return sent;
        await new Promise<void>((resolve) => (wake = resolve));
      }
    },
    close(): void {
      isClosed = true;
      wake();
    },
  };
};

/** The ids of the client's events. */
const collected = (merged: ReturnType<typeof mergeReaders>): string[] => {
  const seen: string[] = [];
  void (async () => {
    for (;;) {
      const frames: readonly SentEvent[] | "ended" | "lost" = await merged.next();
      if (frames === "ended" || frames === "lost") return;
      seen.push(...frames.map(({ seq }) => String(seq)));
    }
  })();
  return seen;
};

const settle = async (): Promise<void> => await new Promise((resolve) => setImmediate(resolve));

test("an event is sent once, after all earlier ones that another subscription may still receive", async () => {
  const [values, messages] = [aSubscription(), aSubscription()];
  const merged = mergeReaders();
  merged.add(values);
  merged.add(messages);
  const seen = collected(merged);
  values.publish(5, 2, 5);
  await settle();
  expect(seen).toEqual([]);
  messages.publish(3, 1, 2, 3);
  await settle();
  expect(seen).toEqual(["1", "2", "3"]);
  messages.publish(5);
  await settle();
  expect(seen).toEqual(["1", "2", "3", "5"]);
  merged.close();
});

test("a later subscription first receives its missed events, and the others wait", async () => {
  const [first, second] = [aSubscription(), aSubscription()];
  const merged = mergeReaders();
  merged.add(first);
  const seen = collected(merged);
  first.publish(3, 1, 3);
  await settle();
  merged.add(second);
  first.publish(4, 4);
  await settle();
  expect(seen).toEqual(["1", "3"]);
  second.publish(4, 2, 3);
  await settle();
  expect(seen).toEqual(["1", "3", "2", "3", "4"]);
  merged.close();
});

test("a subscription that has ended, or reads another thread under the same id, delays no other", async () => {
  const [first, ended, recreated] = [aSubscription(), aSubscription(), aSubscription()];
  const merged = mergeReaders();
  merged.add(first);
  const end = merged.add(ended);
  merged.add(recreated);
  const seen = collected(merged);
  first.publish(9, 9);
  recreated.publish(Infinity);
  await settle();
  expect(seen).toEqual([]);
  end();
  await settle();
  expect([seen, ended.isClosed()]).toEqual([["9"], true]);
  recreated.publish(Infinity, 1);
  await settle();
  expect(seen).toEqual(["9", "1"]);
  merged.close();
  expect([first.isClosed(), recreated.isClosed()]).toEqual([true, true]);
});

test("a subscription without events delays the others for five seconds, once", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const [first, silent] = [aSubscription(), aSubscription()];
  const merged = mergeReaders();
  merged.add(first);
  merged.add(silent);
  const seen = collected(merged);
  first.publish(1, 1);
  await settle();
  vi.advanceTimersByTime(4_900);
  await settle();
  expect(seen).toEqual([]);
  vi.advanceTimersByTime(200);
  first.publish(2, 2);
  await settle();
  expect(seen).toEqual(["1", "2"]);
  merged.close();
});

test("an error of a reader ends the connection", async () => {
  const merged = mergeReaders();
  merged.add({ next: () => Promise.reject(new Error("broken")), close: () => undefined });
  await expect(merged.next()).rejects.toThrow("broken");
});
