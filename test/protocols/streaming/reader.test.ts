import { expect, test, vi } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { createAudiences, NOTHING_YET } from "../../../src/protocols/streaming/reading/connections.ts";
import { lastSeqOf } from "../../../src/protocols/streaming/reading/ends.ts";
import { createFilter } from "../../../src/protocols/streaming/reading/frames.ts";
import {
  readSubscription,
  type SubscriptionReaderOptions,
} from "../../../src/protocols/streaming/reading/reader.ts";
import { eventStreamBody } from "../../../src/protocols/streaming/schemas.ts";
import { PATIENTLY } from "../../helpers/conditions.ts";

/** Reading a thread during a short outage of the database: connections stay, and no reader misses an event. */

const away = (): Error => Object.assign(new Error("The server stops."), { code: "57P01" });

/** A reader of a thread whose only run has ended. */
const aReader = (
  repository: Pick<SubscriptionReaderOptions["repository"], "ended">,
  others: Partial<SubscriptionReaderOptions> = {},
) => {
  const { threadId = newId() } = others;
  const run = { threadId, runId: newId(), turn: 1, attempt: 1, resumable: false };
  const news = [{ runId: run.runId, run, events: [], isOver: true }];
  const thread = { next: async () => news.shift() ?? "ended", close: () => undefined, skip: () => undefined };
  const isStillSeen = vi.fn(async () => true);
  isStillSeen.mockRejectedValueOnce(away());
  return readSubscription({
    threadId,
    filter: createFilter(eventStreamBody.parse({ channels: ["lifecycle"] })),
    hub: { readThread: () => thread } as unknown as SubscriptionReaderOptions["hub"],
    repository: { ...repository, newestRun: async () => undefined },
    audiences: createAudiences(),
    hasFlushed: () => true,
    untilSeen: async () => undefined,
    open: async () => NOTHING_YET,
    isStillSeen,
    onClose: () => undefined,
    ...others,
  });
};

test("the end of a run is sent when the database is back", async () => {
  const ended = vi.fn<SubscriptionReaderOptions["repository"]["ended"]>();
  ended.mockRejectedValueOnce(away());
  ended.mockResolvedValue({ status: "success", turn: 1, error: null, endedAt: 0, waiting: null });
  const reader = aReader({ ended });
  expect(await reader.next()).toEqual({ events: [], upTo: 0 });
  expect(await reader.next()).toMatchObject({
    events: [{ method: "lifecycle", params: expect.stringContaining('"completed"') }],
  });
  expect(await reader.next()).toEqual({ events: [], upTo: lastSeqOf(1) });
  expect(await reader.next()).toBe("ended");
});

test("a client that leaves during the outage is not logged as an error", async () => {
  const ended = vi.fn(() => Promise.reject<undefined>(away()));
  const reader = aReader({ ended });
  await reader.next();
  const next = reader.next();
  await vi.waitUntil(() => ended.mock.calls.length > 0, PATIENTLY);
  reader.close();
  expect(await next).toBe("ended");
});

test("a reader waiting for a hidden thread delays no reader of a visible one", async () => {
  vi.useFakeTimers();
  try {
    const [threadId, audiences] = [newId(), createAudiences()];
    const joined = (isWatcher: boolean) =>
      audiences.join(threadId, { isWatcher, hasFlushed: () => true, openedAt: performance.now() });
    const [watcher, data] = [joined(true), joined(false)];
    const stranger = aReader(
      { ended: async () => undefined },
      {
        ...{ threadId, audiences, filter: createFilter(eventStreamBody.parse({ channels: ["values"] })) },
        untilSeen: (signal) => new Promise((resolve) => signal.addEventListener("abort", () => resolve())),
      },
    );
    const next = stranger.next();
    watcher.began(1);
    data.reached(1);
    let isSent = false;
    void watcher.whenDataTaken(1, new AbortController().signal).then(() => (isSent = true));
    await vi.advanceTimersByTimeAsync(30);
    expect(isSent).toBe(true);
    stranger.close();
    expect(await next).toBe("ended");
  } finally {
    vi.useRealTimers();
  }
});

test("a connection's delay counts from its opening, also if it waited for its thread", async () => {
  vi.useFakeTimers();
  try {
    const [threadId, audiences] = [newId(), createAudiences()];
    const watcher = audiences.join(threadId, {
      ...{ isWatcher: true, hasFlushed: () => true, openedAt: performance.now() },
    });
    let see: () => void = () => undefined;
    const reader = aReader(
      { ended: async () => undefined },
      {
        ...{ threadId, audiences, filter: createFilter(eventStreamBody.parse({ channels: ["values"] })) },
        untilSeen: () => new Promise((resolve) => (see = resolve)),
      },
    );
    const first = reader.next();
    await vi.advanceTimersByTimeAsync(10);
    watcher.began(1);
    await vi.advanceTimersByTimeAsync(800);
    see();
    await first;
    let isSent = false;
    await reader.next();
    await reader.next();
    void watcher.whenDataTaken(1, new AbortController().signal).then(() => (isSent = true));
    await vi.advanceTimersByTimeAsync(30);
    expect(isSent).toBe(true);
    reader.close();
  } finally {
    vi.useRealTimers();
  }
});
