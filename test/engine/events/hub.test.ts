import { createReadRoom } from "../../../src/http/large-answers.ts";
import { createRoom } from "../../../src/http/room.ts";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { Signal } from "../../../src/platform/database/signals.ts";
import type { EventLog, RunEvent } from "../../../src/engine/events/log.ts";
import { Hub } from "../../../src/engine/events/hub.ts";
import { NO_FAULTS } from "../../../src/platform/domain/faults.ts";
import { PATIENTLY } from "../../helpers/conditions.ts";
import { listeningLogger } from "../../helpers/parts.ts";

/** Tests moments between two statements, at which a whole server cannot be paused. */

const THREAD = "0199f000-0000-7000-8000-000000000001";
const RUN = "0199f000-0000-7000-8000-000000000002";

/** A hub on an in-memory log that can delay its next answer. */
const aHub = () => {
  const stored: RunEvent[] = [];
  const sent: string[] = [];
  let listener: ((signal: Signal) => void) | undefined;
  let held: Promise<void> | undefined;
  let heldPhase: Promise<void> | undefined;
  let phase: "pending" | "running" | "ended" = "pending";
  const eventLog = {
    append: async (_source: unknown, events: readonly RunEvent[]) => void stored.push(...events),
    async read(_run: unknown, after: number) {
      await held;
      return stored.filter(({ seq }) => seq > after);
    },
    lastSeq: async () => stored.at(-1)?.seq ?? -1,
    opening: async () => stored[0],
  } as Partial<EventLog> as EventLog;
  const hub = new Hub({
    eventLog,
    readRoom: createReadRoom(),
    turns: { head: async () => undefined, next: async () => undefined },
    processId: "here",
    signals: {
      send: ({ kind }) => void sent.push(kind),
      subscribeToThread: () => () => undefined,
      subscribe(received) {
        listener = received;
        return () => (listener = undefined);
      },
      close: async () => undefined,
    },
    async phaseOf() {
      await heldPhase;
      return phase;
    },
    faults: NO_FAULTS,
    logger: listeningLogger().logger,
  });
  return {
    hub,
    stored,
    sent,
    /** Sends a signal like another process. */
    signal: (kind: Signal["kind"], runId = RUN) => listener?.({ kind, runId } as Signal),
    become: (next: typeof phase) => (phase = next),
    holdReads(): () => void {
      let release = (): void => undefined;
      held = new Promise((resolve) => (release = resolve));
      return release;
    },
    holdPhase(): () => void {
      let release = (): void => undefined;
      heldPhase = new Promise((resolve) => (release = resolve));
      return release;
    },
  };
};

test("a follower of a thread learns which runs begin on it here, until it leaves", () => {
  const { hub } = aHub();
  const begun: number[] = [];
  const leave = hub.followThread(THREAD, "protocol", ({ turn }) => begun.push(turn));
  const open = (turn: number, threadId = THREAD) =>
    hub.open({
      ...{ threadId, runId: RUN, graphId: "graph", attempt: 1, turn, firstSeq: 0 },
      ...{ resumable: false, keep: false, logged: false },
    });
  const first = open(1);
  open(2, "another thread");
  // Other news of the thread.
  hub.end(first);
  open(3);
  leave();
  open(4);
  expect(begun).toEqual([1, 3]);
});

test("a reader of the log continues in memory from its position, not from its start", async () => {
  const { hub, become, holdReads } = aHub();
  const release = holdReads();
  // The run waits for a slot.
  const reader = hub.read({ threadId: THREAD, runId: RUN, after: -1, resumable: true });
  const first = reader.next();
  // The run starts in this process and logs its first event before the log answers the reader.
  become("running");
  const channel = hub.open({
    threadId: THREAD,
    runId: RUN,
    attempt: 1,
    turn: 0,
    firstSeq: 0,
    graphId: "test",
    keep: true,
    resumable: true,
    logged: false,
  });
  channel.emit("metadata", () => "{}");
  await channel.endLog();
  release();
  const ids = [await first].flat().map((event) => (typeof event === "string" ? event : event.seq));
  channel.emit("values", () => "{}");
  await channel.endLog();
  become("ended");
  hub.end(channel);
  for (;;) {
    const events = await reader.next();
    if (typeof events === "string") {
      expect(events).toBe("ended");
      break;
    }
    ids.push(...events.map(({ seq }) => seq));
  }
  hub.close();
  expect(ids).toEqual([0, 1]);
});

test("a run that starts and ends here during a query of the log is read from memory, and its reader misses nothing", async () => {
  const { hub, become, holdPhase } = aHub();
  const release = holdPhase();
  // The run waits for a slot, and the database reports that slowly.
  const reader = hub.read({ threadId: THREAD, runId: RUN, after: -1, resumable: false });
  const first = reader.next();
  const channel = hub.open({
    threadId: THREAD,
    runId: RUN,
    attempt: 1,
    turn: 0,
    firstSeq: 0,
    graphId: "test",
    keep: true,
    resumable: false,
    logged: false,
  });
  channel.emit("metadata", () => "{}");
  channel.emit("values", () => "{}");
  await channel.endLog();
  become("ended");
  hub.end(channel);
  release();
  const events = [await first].flat();
  hub.close();
  expect(events.map((event) => (typeof event === "string" ? event : event.seq))).toEqual([0, 1]);
});

describe("a reader waiting for a run of another process", () => {
  afterEach(() => void vi.useRealTimers());

  /** The reader's polls are disabled, so only a signal wakes it. */
  const waits = async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const made = aHub();
    made.become("running");
    const reader = made.hub.read({ threadId: THREAD, runId: RUN, after: -1, resumable: false });
    const next = reader.next();
    await vi.waitFor(() => expect(made.sent).toEqual(["watch"]), PATIENTLY);
    let woken = false;
    void next.then(() => (woken = true));
    return { ...made, reader, next, isWoken: () => woken };
  };
  const FIRST: RunEvent = { seq: 0, event: "metadata", data: "{}" };

  test("receives events as soon as a signal reports them, and not another run's", async () => {
    const { next, stored, signal, isWoken } = await waits();
    stored.push(FIRST);
    signal("events", THREAD);
    signal("watch");
    await new Promise((resolve) => setImmediate(resolve));
    expect(isWoken()).toBe(false);
    signal("events");
    expect(await next).toEqual([FIRST]);
  });

  test("receives the end at once", async () => {
    const { next, become, signal } = await waits();
    become("ended");
    signal("ended");
    expect(await next).toBe("ended");
  });

  test("receives events from memory as soon as the run continues here", async () => {
    const { hub, next } = await waits();
    const channel = hub.open({
      threadId: THREAD,
      runId: RUN,
      attempt: 2,
      turn: 0,
      firstSeq: 0,
      graphId: "test",
      keep: false,
      resumable: false,
      logged: false,
    });
    channel.emit("metadata", () => "{}");
    expect(await next).toMatchObject([{ seq: 0, event: "metadata" }]);
  });

  test("is asked to reconnect elsewhere when this process stops", async () => {
    const { hub, next } = await waits();
    hub.close();
    expect(await next).toBe("lost");
  });

  test("ends when its client disconnects", async () => {
    const { reader, next } = await waits();
    reader.close();
    expect(await next).toBe("ended");
  });
});

describe("the events of an ended run", () => {
  afterEach(() => void vi.useRealTimers());
  const MIB = 1024 * 1024;
  const opened = (hub: ReturnType<typeof aHub>["hub"], runId: string, attempt = 1) => {
    const channel = hub.open({
      threadId: THREAD,
      runId,
      attempt,
      turn: 0,
      firstSeq: 0,
      graphId: "test",
      keep: true,
      resumable: false,
      logged: false,
    });
    channel.emit("values", () => "x".repeat(3 * MIB));
    return channel;
  };

  test("stay in memory for a while; the newest runs share 8 MiB", () => {
    vi.useFakeTimers();
    const { hub } = aHub();
    const runs = ["a", "b", "c"];
    for (const runId of runs) hub.end(opened(hub, runId));
    expect(runs.map((runId) => hub.holds(THREAD, runId))).toEqual([false, true, true]);
    vi.advanceTimersByTime(60_000);
    for (const runId of runs) {
      expect(hub.holds(THREAD, runId)).toBe(false);
      hub.end(opened(hub, runId));
    }
    expect(runs.map((runId) => hub.holds(THREAD, runId))).toEqual([false, true, true]);
    hub.close();
  });

  test("stay available to a reader who was waiting for the database, even without room for them", async () => {
    const { hub, become, holdPhase } = aHub();
    const release = holdPhase();
    const reader = hub.read({
      threadId: THREAD,
      runId: RUN,
      after: -1,
      resumable: false,
    });
    const first = reader.next();
    hub.end(opened(hub, RUN));
    for (const runId of ["a", "b", "c"]) hub.end(opened(hub, runId));
    expect(hub.holds(THREAD, RUN)).toBe(false);
    become("ended");
    release();
    expect(await first).toMatchObject([{ seq: 0, event: "values" }]);
    expect(await reader.next()).toBe("ended");
    reader.close();
    hub.close();
  });

  test("are replaced by those of its next attempt here, whose readers start again", async () => {
    vi.useFakeTimers();
    const { hub } = aHub();
    opened(hub, RUN);
    const reader = hub.read({ threadId: THREAD, runId: RUN, after: 0, resumable: false });
    const next = reader.next();
    const second = opened(hub, RUN, 2);
    expect(await next).toBe("lost");
    hub.end(second);
    const third = opened(hub, RUN, 3);
    expect(hub.holds(THREAD, RUN)).toBe(true);
    hub.abandon(third);
    expect(hub.holds(THREAD, RUN)).toBe(false);
    // Removed events are not counted any more, and no event is counted twice.
    const others = ["a", "b", "c"];
    for (const runId of others) hub.end(opened(hub, runId));
    expect(others.map((runId) => hub.holds(THREAD, runId))).toEqual([false, true, true]);
    hub.close();
  });
});

test("if many readers do not read, only some hold a large event, and the others get it when those leave", async () => {
  const large: RunEvent = { seq: 0, event: "values", data: JSON.stringify("x".repeat(1_000_000)) };
  let given = 0;
  const eventLog = {
    async read(_run: unknown, _after: number, { largeToo }: { largeToo: boolean }) {
      if (!largeToo) return "large";
      given += 1;
      return [large];
    },
  } as Partial<EventLog> as EventLog;
  const hub = new Hub({
    eventLog,
    readRoom: createRoom({ places: 1, unreadBytesAtMost: 8_000_000 }),
    turns: { head: async () => undefined, next: async () => undefined },
    processId: "here",
    signals: {
      send: () => undefined,
      subscribe: () => () => undefined,
      subscribeToThread: () => () => undefined,
      close: async () => undefined,
    },
    phaseOf: async () => "ended",
    faults: NO_FAULTS,
    logger: listeningLogger().logger,
  });
  const readers = Array.from({ length: 30 }, () =>
    hub.read({ threadId: THREAD, runId: RUN, after: -1, resumable: true }),
  );
  // Each reader holds one event, and no client asks for the next.
  const answers = readers.map((reader) => reader.next());
  await Promise.race(answers);
  await new Promise(setImmediate);
  expect(given).toBe(8);
  for (const reader of readers.slice(0, 8)) reader.close();
  await answers[8];
  await new Promise(setImmediate);
  expect(given).toBe(16);
  // A waiting reader that leaves frees no place of another reader.
  for (const reader of readers.slice(8, 29)) reader.close();
  expect(await answers[29]).toEqual([large]);
  expect(given).toBe(17);
  hub.close();
});
