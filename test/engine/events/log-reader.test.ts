import type { Room } from "../../../src/http/room.ts";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { EventLog, RunEvent, RunPhase } from "../../../src/engine/events/log.ts";
import { readLog, type LogReaderOptions } from "../../../src/engine/events/readers/log-reader.ts";
import type { RunReader } from "../../../src/engine/events/channel.ts";
import { PATIENTLY } from "../../helpers/conditions.ts";
import { listeningLogger } from "../../helpers/parts.ts";

// The reader's poll every half second runs only when a test advances the clock, so a missing wake-up is detected.
beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

const anEvent = (seq: number): RunEvent => ({ seq, event: "values", data: "{}" });
const anError = (seq: number): RunEvent => ({ ...anEvent(seq), event: "error" });
const PASSING = Object.assign(new Error("the database restarts"), { code: "57P01" });

/** Resolves when no more work can proceed without the test. */
const settled = async () => {
  for (let turns = 0; turns < 4; turns += 1) await new Promise(setImmediate);
};

/** A reader of an in-memory log that can fail, delay and hold large events. */
const reading = (options: Partial<LogReaderOptions> = {}) => {
  const stored: RunEvent[] = [];
  const { logger, lines } = listeningLogger();
  const state = {
    phase: "running" as RunPhase,
    stopped: false,
    /** The error that the database answers; undefined: it answers the stored events. */
    failure: undefined as Error | undefined,
    large: false,
    held: undefined as Promise<void> | undefined,
    local: undefined as RunReader | undefined,
    localAfter: [] as (number | undefined)[],
    asked: 0,
    looks: 0,
    wakers: new Set<(isUnlogged?: boolean) => void>(),
    /** Occupied places for large events, and readers waiting for one. */
    inside: 0,
    letIn: [] as (() => void)[],
  };
  const eventLog = {
    async read(_run: unknown, after: number, { largeToo }: { largeToo: boolean }) {
      state.looks += 1;
      await state.held;
      if (state.failure !== undefined) throw state.failure;
      if (state.large && !largeToo) return "large";
      return stored.filter(({ seq }) => seq > after);
    },
    lastSeq: async () => stored.at(-1)?.seq ?? -1,
    opening: async () => stored[0],
  } as Partial<EventLog> as EventLog;
  const enter = (): Promise<() => void> =>
    new Promise((resolve) => state.letIn.push(() => resolve(() => undefined)));
  const readRoom = {
    enter,
    make: async (_caller: unknown, work: () => Promise<unknown>) => {
      await enter();
      return await work();
    },
    unread() {
      state.inside += 1;
      let isIn = true;
      return () => {
        if (isIn) state.inside -= 1;
        isIn = false;
      };
    },
  } as Partial<Room> as Room;
  const reader = readLog({
    eventLog,
    run: { threadId: "thread", runId: "run" },
    after: -1,
    wire: "first",
    resumable: false,
    phaseOf: async () => state.phase,
    watch(wake) {
      state.wakers.add(wake);
      return () => state.wakers.delete(wake);
    },
    askForEvents: () => (state.asked += 1),
    onLocal(after) {
      state.localAfter.push(after);
      return state.local;
    },
    readRoom,
    caller: undefined,
    isStopped: () => state.stopped,
    logger,
    ...options,
  });
  /** The ids of the next events, or how the reader ended; undefined while it waits. */
  const next = () => {
    const answer: { news: number[] | string | undefined } = { news: undefined };
    void reader.next().then((news) => {
      answer.news = typeof news === "string" ? news : news.map(({ seq }) => seq);
    });
    return answer;
  };
  const nextNow = async () => {
    const answer = next();
    await settled();
    return answer.news;
  };
  const wake = async () => {
    for (const waker of state.wakers) waker();
    await settled();
  };
  return { state, stored, lines, reader, next, nextNow, wake };
};

describe("the error of an attempt", () => {
  test("comes once the run's end is stored", async () => {
    const { state, stored, next, nextNow, wake } = reading();
    stored.push(anEvent(1), anError(2));
    expect(await nextNow()).toEqual([1]);
    const last = next();
    await settled();
    expect(last.news).toBeUndefined();
    state.phase = "ended";
    await wake();
    expect(last.news).toEqual([2]);
    expect(await nextNow()).toBe("ended");
  });

  test.each([
    ["in a page of its own", [[anEvent(1), anError(2)], [anEvent(101)]]],
    ["alone in its page", [[anError(2)], [anEvent(101)]]],
    ["in the page of its events", [[anEvent(1), anError(2), anEvent(101)]]],
  ])("is left out if another attempt continued the run (%s)", async (_, pages) => {
    const { state, stored, reader, wake } = reading();
    const seen: RunEvent[] = [];
    const all = (async () => {
      for (let news = await reader.next(); Array.isArray(news); news = await reader.next())
        seen.push(...news);
    })();
    for (const page of pages) {
      stored.push(...page);
      await settled();
      await wake();
    }
    state.phase = "ended";
    await wake();
    await all;
    expect(seen).toEqual(pages.flat().filter(({ event }) => event !== "error"));
  });
});

/** An in-memory reader that records its calls. */
const aLocal = () => {
  const done = { closed: 0 };
  const local: RunReader = {
    next: async () => [anEvent(7)],
    close: () => void (done.closed += 1),
  };
  return { local, done };
};

describe("a reader of the log", () => {
  test("gets the events after its position page by page, and then the end", async () => {
    const { state, stored, nextNow } = reading({ after: 0 });
    stored.push(anEvent(0), anEvent(1), anEvent(2));
    state.phase = "ended";
    expect(await nextNow()).toEqual([1, 2]);
    expect(await nextNow()).toBe("ended");
    // No poll is scheduled any more.
    expect(vi.getTimerCount()).toBe(0);
  });

  test("waits for a wake-up, and polls twice a second in case none comes", async () => {
    const { state, stored, next, wake } = reading();
    const first = next();
    await settled();
    expect([state.looks, first.news]).toEqual([1, undefined]);
    await wake();
    expect([state.looks, first.news]).toEqual([2, undefined]);
    // The previous poll's timer has been cleared.
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(499);
    await settled();
    expect(state.looks).toBe(2);
    stored.push(anEvent(0));
    await vi.advanceTimersByTimeAsync(1);
    await settled();
    expect(first.news).toEqual([0]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("does not miss a signal that arrives during a query of the log", async () => {
    const { state, stored, next, wake } = reading();
    let release = (): void => undefined;
    state.held = new Promise((resolve) => (release = resolve));
    const first = next();
    await settled();
    await wake();
    // The running query found nothing; the signal says that an event exists.
    state.held = undefined;
    release();
    await Promise.resolve();
    stored.push(anEvent(0));
    await settled();
    expect(first.news).toEqual([0]);
  });

  test("of a run without events begins with the first one", async () => {
    const { stored, next, wake } = reading({ after: undefined });
    const first = next();
    await settled();
    expect(first.news).toBeUndefined();
    stored.push(anEvent(0), anEvent(1));
    await wake();
    expect(first.news).toEqual([0, 1]);
  });

  test("that joins in the middle gets the first event, and then new ones", async () => {
    const { stored, nextNow, next, wake } = reading({ after: undefined });
    stored.push(anEvent(0), anEvent(1), anEvent(2));
    expect(await nextNow()).toEqual([0]);
    const second = next();
    await settled();
    expect(second.news).toBeUndefined();
    stored.push(anEvent(3));
    await wake();
    expect(second.news).toEqual([3]);
  });

  test("that joins after the first event gets only that one", async () => {
    const { stored, nextNow } = reading({ after: undefined });
    stored.push(anEvent(0));
    expect(await nextNow()).toEqual([0]);
  });
});

describe("the process that executes the run", () => {
  test("is asked for events repeatedly until one arrives", async () => {
    const { state, stored, next, nextNow, wake } = reading();
    const first = next();
    await settled();
    await wake();
    expect(state.asked).toBe(2);
    stored.push(anEvent(0));
    await wake();
    expect(first.news).toEqual([0]);
    await nextNow();
    expect(state.asked).toBe(2);
  });

  test("is not asked while the run waits: this process may execute the run, and would log events without a reader", async () => {
    const { state, next, wake } = reading();
    state.phase = "pending";
    next();
    await settled();
    expect(state.asked).toBe(0);
    state.phase = "running";
    await wake();
    expect(state.asked).toBe(1);
  });

  test("is not asked for events that it logs anyway", async () => {
    const { state, nextNow } = reading({ resumable: true });
    await nextNow();
    expect([state.looks, state.asked]).toEqual([1, 0]);
  });
});

test.each(["running", "ended"] as const)(
  "a reader is cut off if the run's events can't be logged (%s)",
  async (phase) => {
    const { state, stored, next, nextNow } = reading();
    stored.push(anEvent(0));
    expect(await nextNow()).toEqual([0]);
    const second = next();
    await settled();
    expect(second.news).toBeUndefined();
    state.phase = phase;
    for (const wake of state.wakers) wake(true);
    await settled();
    expect([second.news, vi.getTimerCount()]).toEqual(["lost", 0]);
  },
);

describe("a run that this process begins to execute", () => {
  test("is read from memory from the reader's position", async () => {
    const { state, stored, nextNow } = reading({ after: 3 });
    stored.push(anEvent(4));
    expect(await nextNow()).toEqual([4]);
    const { local, done } = aLocal();
    state.local = local;
    expect(await nextNow()).toEqual([7]);
    expect(await nextNow()).toEqual([7]);
    expect(state.localAfter).toEqual([3, 4]);
    expect([state.looks, done.closed]).toEqual([1, 0]);
  });

  test.each(["running", "ended"] as const)(
    "is read from memory also if it begins during a query of the log (%s)",
    async (phase) => {
      const { state, next } = reading();
      let release = (): void => undefined;
      state.held = new Promise((resolve) => (release = resolve));
      state.phase = phase;
      const first = next();
      await settled();
      state.local = aLocal().local;
      release();
      await settled();
      expect(first.news).toEqual([7]);
      expect(vi.getTimerCount()).toBe(0);
    },
  );

  test("stays with its reader", async () => {
    const { state, reader, nextNow } = reading();
    const { local, done } = aLocal();
    state.local = local;
    await nextNow();
    reader.close();
    expect(done.closed).toBe(1);
    expect(await nextNow()).toBe("ended");
  });
});

describe("a reader whose client has disconnected", () => {
  test("ends at once, and is not watched any more", async () => {
    const { state, reader, next, nextNow } = reading();
    const first = next();
    await settled();
    reader.close();
    await settled();
    expect([first.news, state.wakers.size, vi.getTimerCount()]).toEqual(["ended", 0, 0]);
    const { looks } = state;
    expect([await nextNow(), state.looks]).toEqual(["ended", looks]);
  });

  test("ends while the database does not answer, and logs nothing", async () => {
    const { state, lines, reader, next } = reading();
    state.held = new Promise((_, reject) => setImmediate(() => reject(new Error("it has gone"))));
    const first = next();
    reader.close();
    await settled();
    await settled();
    expect([first.news, lines, vi.getTimerCount()]).toEqual(["ended", [], 0]);
  });
});

describe("a process that stops", () => {
  test("disconnects its readers", async () => {
    const { state, next, nextNow, wake } = reading();
    const first = next();
    await settled();
    state.stopped = true;
    await wake();
    expect([first.news, await nextNow()]).toEqual(["lost", "lost"]);
  });

  test("does not log a database failure meanwhile", async () => {
    const { state, lines, nextNow } = reading();
    state.held = new Promise((_, reject) =>
      setImmediate(() => {
        state.stopped = true;
        reject(new Error("it has gone"));
      }),
    );
    expect(await nextNow()).toBe("lost");
    expect([lines, vi.getTimerCount()]).toEqual([[], 0]);
  });
});

describe("a failing database query", () => {
  test("is repeated after a temporary failure while a reader remains", async () => {
    vi.useRealTimers();
    const { state, stored, reader, next } = reading();
    state.failure = PASSING;
    stored.push(anEvent(0));
    const first = next();
    await vi.waitFor(() => expect(state.looks).toBeGreaterThan(1), PATIENTLY);
    state.failure = undefined;
    await vi.waitFor(() => expect(first.news).toEqual([0]), PATIENTLY);
    state.failure = PASSING;
    const second = next();
    await settled();
    reader.close();
    await vi.waitFor(() => expect(second.news).toBe("ended"), PATIENTLY);
    expect(state.looks).toBeLessThan(6);
  });

  test("is not repeated by a process that stops", async () => {
    vi.useRealTimers();
    const { state, next } = reading();
    state.failure = PASSING;
    const first = next();
    await settled();
    state.stopped = true;
    await vi.waitFor(() => expect(first.news).toBe("lost"), PATIENTLY);
  });

  test("is logged, and disconnects its readers", async () => {
    const { state, lines, nextNow } = reading();
    state.failure = new Error("the table is missing");
    expect(await nextNow()).toBe("lost");
    expect(lines.join("")).toContain("the events of a run could not be read");
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("a large event", () => {
  const waitsForPlace = async () => {
    const made = reading();
    made.state.large = true;
    made.stored.push(anEvent(0));
    const first = made.next();
    await settled();
    expect([first.news, made.state.letIn.length]).toEqual([undefined, 1]);
    return { ...made, first };
  };

  test("is read when a place is free, and returns the place when the event is delivered", async () => {
    const { state, first, nextNow } = await waitsForPlace();
    state.letIn[0]?.();
    await settled();
    expect([first.news, state.inside]).toEqual([[0], 1]);
    state.phase = "ended";
    state.large = false;
    expect([await nextNow(), state.inside]).toEqual(["ended", 0]);
  });

  test("returns its place when its client disconnects", async () => {
    const { state, reader } = await waitsForPlace();
    state.letIn[0]?.();
    await settled();
    reader.close();
    expect(state.inside).toBe(0);
  });

  test("is not read if its client has disconnected meanwhile", async () => {
    const { state, first, reader } = await waitsForPlace();
    const { looks } = state;
    reader.close();
    state.letIn[0]?.();
    await settled();
    expect([first.news, state.inside, state.looks]).toEqual(["ended", 0, looks]);
  });

  test("keeps no place granted in the moment at which its client disconnects", async () => {
    const { state, first, reader } = await waitsForPlace();
    state.letIn[0]?.();
    reader.close();
    await settled();
    expect([first.news, state.inside]).toEqual(["ended", 0]);
  });

  test("takes one place per event", async () => {
    const { state, stored, next } = await waitsForPlace();
    state.letIn[0]?.();
    await settled();
    stored.push(anEvent(1));
    const second = next();
    await settled();
    expect([second.news, state.inside, state.letIn.length]).toEqual([undefined, 0, 2]);
    state.letIn[1]?.();
    await settled();
    expect([second.news, state.inside]).toEqual([[1], 1]);
  });
});
