import { describe, expect, test } from "vitest";
import type { RunEvent } from "../../../src/engine/events/log.ts";
import { RunChannel } from "../../../src/engine/events/channel.ts";
import type { RunChannelOptions } from "../../../src/engine/events/channel-options.ts";

const MIB = 1024 * 1024;
/** What is kept for readers, and what is emitted until a graph has to pause. */
const [KEPT_BYTES, PAUSE_BYTES] = [8 * MIB, MIB];

const aChannel = (options: Partial<RunChannelOptions> = {}) =>
  new RunChannel({
    threadId: "thread",
    runId: "run",
    attempt: 1,
    turn: 0,
    firstSeq: 0,
    keep: true,
    ...options,
  });
const emit = (channel: RunChannel, events: number, data = "") => {
  for (let count = 0; count < events; count += 1) channel.emit("values", () => data);
};
const ids = (events: readonly RunEvent[] | undefined) => events?.map(({ seq }) => seq);

/** A log that keeps each batch waiting until it is told to go on. */
const aLog = () => {
  const batches: (number[] | undefined)[] = [];
  const held: { resolve: () => void; reject: (error: Error) => void }[] = [];
  return {
    batches,
    log: (events: RunEvent[]) => {
      batches.push(ids(events));
      return new Promise<void>((resolve, reject) => held.push({ resolve, reject }));
    },
    commit: () => held.shift()?.resolve(),
    refuse: (error: Error) => held.shift()?.reject(error),
  };
};
/** All that can go on without anybody from outside has gone on. */
const settled = async () => {
  for (let turns = 0; turns < 4; turns += 1) await new Promise(setImmediate);
};
/** Whether it has ended by now. */
const watched = (work: Promise<unknown>) => {
  const state = { over: false };
  const over = () => (state.over = true);
  work.then(over, over);
  return state;
};

test("it is the attempt's that it was opened for", () => {
  const { threadId, runId, attempt, firstSeq, lastSeq, closed } = aChannel({ attempt: 2, firstSeq: 7 });
  expect({ threadId, runId, attempt, firstSeq, lastSeq, closed }).toEqual({
    threadId: "thread",
    runId: "run",
    attempt: 2,
    firstSeq: 7,
    lastSeq: 6,
    closed: false,
  });
});

describe("what nobody wants", () => {
  test("is counted, and only its first event is made", () => {
    const channel = aChannel({ keep: false, firstSeq: 3 });
    let made = 0;
    for (let count = 0; count < 3; count += 1) channel.emit("values", () => `${(made += 1)}`);
    expect([channel.wanted, made, channel.keptBytes]).toEqual([false, 1, 0]);
    expect(channel.opening).toEqual({ seq: 3, event: "values", data: "1" });
    expect([channel.lastSeq, channel.firstKeptSeq]).toEqual([5, 6]);
    expect(channel.read(5)).toEqual([]);
    expect(channel.read(4)).toBeUndefined();
  });

  test("is counted from its first event on: who then joins is not told that he has missed some", () => {
    const channel = aChannel({ keep: false });
    emit(channel, 1);
    expect([channel.lastSeq, channel.firstKeptSeq]).toEqual([0, 1]);
    channel.attach(() => undefined);
    emit(channel, 1);
    expect(ids(channel.read(0))).toEqual([1]);
  });

  test("is kept from the moment on at which the first reader comes, also when he has gone", () => {
    const channel = aChannel({ keep: false });
    emit(channel, 2);
    const detach = channel.attach(() => undefined);
    emit(channel, 1);
    detach();
    emit(channel, 1);
    expect(ids(channel.read(1))).toEqual([2, 3]);
    expect(channel.read(0)).toBeUndefined();
    expect(channel.opening?.seq).toBe(0);
  });
});

describe("a reader", () => {
  test("gets what comes after the event that he has", () => {
    const channel = aChannel({ firstSeq: 5 });
    expect(channel.read(4)).toEqual([]);
    emit(channel, 3);
    expect([4, 5, 6, 7, 8].map((after) => ids(channel.read(after)))).toEqual([
      [5, 6, 7],
      [6, 7],
      [7],
      [],
      [],
    ]);
  });

  test("is woken by each event and by the end, until he goes", () => {
    const channel = aChannel();
    const woken = { here: 0, gone: 0 };
    channel.attach(() => (woken.here += 1));
    channel.attach(() => (woken.gone += 1))();
    emit(channel, 2);
    expect(woken.here).toBe(2);
    channel.close();
    channel.close();
    emit(channel, 1);
    expect(woken).toEqual({ here: 3, gone: 0 });
    expect([channel.closed, ids(channel.read(-1))]).toEqual([true, [0, 1]]);
  });

  test("is told that events are gone which he has not seen", () => {
    const channel = aChannel();
    emit(channel, 12, "x".repeat(MIB));
    expect(channel.read(-1)).toBeUndefined();
    const oldest = channel.firstKeptSeq;
    expect(oldest).toBe(5);
    expect(channel.read(oldest - 2)).toBeUndefined();
    expect(ids(channel.read(oldest - 1))).toEqual([5, 6, 7, 8, 9, 10, 11]);
    expect(channel.opening?.seq).toBe(0);
  });

  test("gets the newest event however large it is", () => {
    const channel = aChannel();
    emit(channel, 2, "x".repeat(2 * KEPT_BYTES));
    expect(ids(channel.read(0))).toEqual([1]);
  });
});

describe("memory", () => {
  test("counts what an event costs beside its data, and has its bound with small events, too", () => {
    const channel = aChannel();
    emit(channel, 1_000);
    const each = channel.keptBytes / 1_000;
    expect(each).toBeGreaterThan(100);
    emit(channel, 150_000);
    expect(channel.keptBytes).toBeLessThanOrEqual(KEPT_BYTES);
    expect(channel.keptBytes).toBeGreaterThan(KEPT_BYTES - each);
    const kept = channel.lastSeq + 1 - channel.firstKeptSeq;
    expect(channel.keptBytes).toBe(kept * each);
    expect(ids(channel.read(channel.firstKeptSeq - 1))).toHaveLength(kept);
  });

  test("keeps what the log has not yet, however much that is", async () => {
    const { log, commit } = aLog();
    const channel = aChannel({ log });
    emit(channel, 12, "x".repeat(MIB));
    expect(channel.firstKeptSeq).toBe(0);
    await settled();
    commit();
    await settled();
    expect(channel.keptBytes).toBeLessThanOrEqual(KEPT_BYTES);
    expect([channel.lastSeq, channel.firstKeptSeq]).toEqual([11, 5]);
  });
});

describe("a graph that emits without end", () => {
  test("has to pause after a MiB, also of events that hold nothing", async () => {
    for (const [data, events] of [
      ["x".repeat(MIB / 8), 8],
      ["", 10_000],
    ] as const) {
      const channel = aChannel();
      expect(channel.needsPause).toBe(false);
      emit(channel, events / 2, data);
      expect(channel.needsPause).toBe(false);
      emit(channel, events / 2, data);
      expect(channel.needsPause).toBe(true);
      await channel.pause();
      expect(channel.needsPause).toBe(false);
    }
  });

  test("need not pause for what nobody wants", () => {
    const channel = aChannel({ keep: false });
    emit(channel, 3, "x".repeat(PAUSE_BYTES));
    expect(channel.needsPause).toBe(false);
  });

  test("gives the sockets of readers a turn while it pauses", async () => {
    let turn = false;
    setImmediate(() => (turn = true));
    await aChannel().pause();
    expect(turn).toBe(true);
  });

  test("goes on when the log has what was emitted", async () => {
    const { log, commit } = aLog();
    const channel = aChannel({ log });
    emit(channel, 1);
    const pause = watched(channel.pause());
    await settled();
    expect(pause.over).toBe(false);
    commit();
    await settled();
    expect(pause.over).toBe(true);
  });
});

describe("with a log", () => {
  test("readers see what it has, and what comes meanwhile goes with the next batch", async () => {
    const { log, batches, commit } = aLog();
    const channel = aChannel({ log, firstSeq: 3 });
    let woken = 0;
    channel.attach(() => (woken += 1));
    emit(channel, 2);
    await settled();
    emit(channel, 3);
    await settled();
    expect([channel.read(2), channel.lastSeq, woken]).toEqual([[], 2, 0]);
    commit();
    await settled();
    expect([ids(channel.read(2)), channel.lastSeq, woken]).toEqual([[3, 4], 4, 1]);
    commit();
    await settled();
    expect(ids(channel.read(2))).toEqual([3, 4, 5, 6, 7]);
    expect(batches).toEqual([
      [3, 4],
      [5, 6, 7],
    ]);
    emit(channel, 1);
    await settled();
    expect(batches).toHaveLength(3);
  });

  test("events are wanted though nobody reads here", () => {
    expect(aChannel({ keep: false, log: aLog().log }).wanted).toBe(true);
  });

  test("a batch that it refuses ends all: readers have to go, no event comes any more, and the run can't end", async () => {
    const { log, batches, refuse } = aLog();
    const channel = aChannel({ log });
    let woken = 0;
    channel.attach(() => (woken += 1));
    emit(channel, 1);
    await settled();
    refuse(new Error("the lease is lost"));
    await settled();
    expect([channel.read(-1), woken]).toEqual([undefined, 1]);
    // It holds nothing any more.
    expect([channel.keptBytes, channel.firstKeptSeq]).toEqual([0, 1]);
    channel.emit("values", () => {
      throw new Error("It is made for nobody.");
    });
    await settled();
    expect([batches, channel.keptBytes]).toEqual([[[0]], 0]);
    await expect(channel.endLog()).rejects.toThrow("the lease is lost");
  });
});

describe("what waits until events are logged", () => {
  test("waits for those that were emitted before, and for no others", async () => {
    const { log, commit } = aLog();
    const channel = aChannel({ log });
    expect(channel.logged()).toBeUndefined();
    emit(channel, 2);
    let isLogged = false;
    const logged = channel.logged()?.then(() => (isLogged = true));
    await settled();
    expect(isLogged).toBe(false);
    emit(channel, 1);
    commit();
    await logged;
    expect(channel.logged()).toBeDefined();
  });

  test("does not wait without a log, nor for one that refuses them", async () => {
    const unlogged = aChannel();
    emit(unlogged, 1);
    expect(unlogged.logged()).toBeUndefined();
    const channel = aChannel({ log: () => Promise.reject(new Error("the lease is lost")) });
    emit(channel, 1);
    await channel.logged();
    emit(channel, 1);
    expect(channel.logged()).toBeUndefined();
  });
});

describe("when another process comes to read", () => {
  test("the log gets what is kept, and readers here see what it has from then on", async () => {
    const { log, batches, commit } = aLog();
    const channel = aChannel();
    emit(channel, 2);
    channel.startLogging(log);
    expect(channel.read(-1)).toEqual([]);
    await settled();
    expect(batches).toEqual([[0, 1]]);
    commit();
    await settled();
    expect(ids(channel.read(-1))).toEqual([0, 1]);
    emit(channel, 1);
    await settled();
    expect(batches).toEqual([[0, 1], [2]]);
  });

  test("the log gets the first event in any case, and once", async () => {
    const dropped = aLog();
    const channel = aChannel();
    emit(channel, 12, "x".repeat(MIB));
    channel.startLogging(dropped.log);
    await settled();
    dropped.commit();
    await settled();
    expect(dropped.batches).toEqual([[0, 5, 6, 7, 8, 9, 10, 11]]);

    const alone = aLog();
    const unread = aChannel({ keep: false });
    emit(unread, 3);
    unread.startLogging(alone.log);
    await settled();
    alone.commit();
    await settled();
    expect(alone.batches).toEqual([[0]]);

    const before = aLog();
    const silent = aChannel({ keep: false });
    silent.startLogging(before.log);
    await settled();
    expect(before.batches).toEqual([]);
    emit(silent, 1);
    await settled();
    before.commit();
    await settled();
    expect(before.batches).toEqual([[0]]);
  });

  test("a second one changes nothing: no event is written twice", async () => {
    const [first, second] = [aLog(), aLog()];
    const channel = aChannel();
    emit(channel, 2);
    channel.startLogging(first.log);
    await settled();
    first.commit();
    await settled();
    channel.startLogging(second.log);
    expect(ids(channel.read(-1))).toEqual([0, 1]);
    emit(channel, 1);
    await settled();
    expect([first.batches, second.batches]).toEqual([[[0, 1], [2]], []]);
  });

  test("it is too late when the run is about to end, or has ended", async () => {
    for (const end of [(channel: RunChannel) => channel.endLog(), (channel: RunChannel) => channel.close()]) {
      const { log, batches } = aLog();
      const channel = aChannel();
      emit(channel, 1);
      await end(channel);
      channel.startLogging(log);
      await settled();
      expect(batches).toEqual([]);
      expect(ids(channel.read(-1))).toEqual([0]);
    }
  });
});

describe("before a run ends", () => {
  test("everything is in the log", async () => {
    const { log, batches, commit } = aLog();
    const channel = aChannel({ log });
    emit(channel, 1);
    const ended = watched(channel.endLog());
    await settled();
    emit(channel, 1);
    commit();
    await settled();
    expect(ended.over).toBe(false);
    commit();
    await settled();
    expect([ended.over, batches]).toEqual([true, [[0], [1]]]);
  });

  test("also what is emitted at the very moment at which the last batch is committed", async () => {
    const batches: (number[] | undefined)[] = [];
    let more = 1;
    const channel = aChannel({
      async log(events) {
        batches.push(ids(events));
      },
    });
    channel.attach(() => {
      // After the loop that writes has looked for more, and before its end is seen.
      if (more > 0) queueMicrotask(() => emit(channel, (more -= 1) + 1));
    });
    emit(channel, 1);
    await channel.endLog();
    expect([batches.flat(), channel.lastSeq]).toEqual([[0, 1], 1]);
  });

  test("nothing is waited for without a log", async () => {
    const channel = aChannel();
    emit(channel, 1);
    await channel.endLog();
    expect(ids(channel.read(-1))).toEqual([0]);
  });
});
