import { expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { beforeTurn } from "../../../src/engine/events/event-ids.ts";
import type { Hub } from "../../../src/engine/events/hub.ts";
import { openReadAccess, type StreamingRepository } from "../../../src/protocols/streaming/repository.ts";
import { createReadingService } from "../../../src/protocols/streaming/reading/service.ts";
import { eventStreamBody } from "../../../src/protocols/streaming/schemas.ts";
import { caller, authorize } from "../../helpers/access.ts";

/** What a connection sends of a run that has ended before the server reads the thread for the first time. */

const lifecycleOfRun = async (begins: "before" | "after"): Promise<unknown[]> => {
  const [threadId, runId] = [newId(), newId()];
  const run = { threadId, runId, graphId: "graph", turn: 1, attempt: 1, resumable: true };
  const metadata = { event: "metadata", data: "{}", seq: 0, threadSeq: beforeTurn(1) + 1 };
  const news = [
    { runId, run, events: [metadata], isOver: false },
    { runId, run, events: [], isOver: true },
  ];
  let begun: ((turn: typeof run) => void) | undefined = () => undefined;
  const hub = {
    followThread: (_threadId: string, _wire: string, onBegun: typeof begun) => {
      begun = onBegun;
      return () => undefined;
    },
    readThread: () => ({ next: async () => news.shift() ?? "ended", close: () => undefined }),
  } as unknown as Hub;
  const row = { status: "success", turn: 1, error: null, waiting: null } as const;
  const repository = {
    newestRun: async () => ({ ...row, ...run, waits: false, unfinished: 0, lastTurn: 1, endedAgo: 1 }),
    replayStart: async () => 1,
    ended: async () => ({ ...row, endedAt: 0 }),
  } as unknown as StreamingRepository;
  const service = createReadingService(authorize, repository, hub, { subscribeToThread: () => () => {} });
  const access = await openReadAccess(authorize, repository, caller("me"), threadId);
  const watcher = eventStreamBody.parse({ channels: ["lifecycle", "input"] });
  const reader = await service.read(access, watcher, { hasFlushed: () => true });
  if (begins === "after") begun?.(run);
  const sent: unknown[] = [];
  for (;;) {
    const next = await reader.next();
    if (typeof next === "string") break;
    for (const { params } of next.events)
      sent.push((JSON.parse(params) as { data: { event: string } }).data.event);
  }
  reader.close();
  return sent;
};

test("a watcher receives a run that began after the watcher was answered, however late the thread is read", async () => {
  expect(await lifecycleOfRun("after")).toEqual(["running", "completed"]);
});

test("a watcher receives nothing of a run that ended before", async () => {
  expect(await lifecycleOfRun("before")).toEqual([]);
});
