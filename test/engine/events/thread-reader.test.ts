import { expect, test, vi } from "vitest";
import type { RunReader } from "../../../src/engine/events/channel.ts";
import {
  readThread,
  type BegunRun,
  type ThreadHead,
} from "../../../src/engine/events/readers/thread-reader.ts";
import { beforeTurn } from "../../../src/engine/events/event-ids.ts";
import { PATIENTLY } from "../../helpers/conditions.ts";
import { listeningLogger } from "../../helpers/parts.ts";

/** The database queries of a thread's reader, and the runs that it reads from its own process. */

const THREAD = "0199f000-0000-7000-8000-000000000001";

const runOf = (turn: number): BegunRun => ({
  threadId: THREAD,
  runId: `run ${turn}`,
  turn,
  attempt: 1,
  graphId: "test",
  resumable: true,
});

/** Each run emits one event and ends. */
const readRun = (run: BegunRun): RunReader => {
  const news = [[{ seq: 0, threadSeq: beforeTurn(run.turn) + 1, event: "metadata", data: "{}" }]];
  return { next: async () => news.shift() ?? "ended", close: () => undefined };
};

const aThread = (head: ThreadHead | undefined, after = 0) => {
  let wake: (begun?: BegunRun) => void = () => undefined;
  const turns = {
    head: vi.fn(async () => head),
    next: vi.fn(async (_threadId: string, from: number) => (from <= 1 ? runOf(1) : undefined)),
  };
  const reader = readThread({
    threadId: THREAD,
    after,
    turns,
    readRun,
    held: () => [],
    follow(waker) {
      wake = waker;
      return () => undefined;
    },
    isStopped: () => false,
    logger: listeningLogger().logger,
  });
  return { reader, turns, begin: (turn: number) => wake(runOf(turn)) };
};

test("a run that begins here with the next turn is read without a database query", async () => {
  const { reader, turns, begin } = aThread({ over: 1, running: null, createdAt: "1" });
  expect(await reader.next()).toMatchObject({ runId: "run 1", isOver: false });
  expect(await reader.next()).toMatchObject({ runId: "run 1", isOver: true });
  const next = reader.next();
  await vi.waitUntil(() => turns.next.mock.calls.length === 2, PATIENTLY);
  begin(2);
  expect(await next).toMatchObject({ runId: "run 2" });
  await reader.next();
  begin(3);
  expect(await reader.next()).toMatchObject({ runId: "run 3" });
  expect(turns.next).toHaveBeenCalledTimes(2);
  reader.close();
});

test("a run that begins here is read only after the earlier unread runs", async () => {
  const { reader, turns, begin } = aThread({ over: 2, running: 3, createdAt: "1" });
  begin(3);
  expect(await reader.next()).toMatchObject({ runId: "run 1" });
  await reader.next();
  turns.next.mockImplementation(async (_threadId, from) => runOf(from));
  expect(await reader.next()).toMatchObject({ runId: "run 2" });
  reader.close();
});

test("a reader that names an event of an unknown turn comes from a deleted thread", async () => {
  const { reader } = aThread({ over: 1, running: null, createdAt: "2" }, beforeTurn(8));
  expect(await reader.next()).toBe("recreated");
  expect(await reader.next()).toMatchObject({ runId: "run 1" });
  reader.close();
});

test("a reader that names the last possible event of the newest turn does not", async () => {
  const { reader, begin } = aThread({ over: 1, running: null, createdAt: "2" }, beforeTurn(2));
  expect(await reader.next()).toMatchObject({ runId: "run 1", isOver: true });
  begin(2);
  expect(await reader.next()).toMatchObject({ runId: "run 2" });
  reader.close();
});
