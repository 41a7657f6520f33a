import { describe, expect, test } from "vitest";
import type { RunEvent } from "../../../src/engine/events/log.ts";
import { LeaseLostError } from "../../../src/platform/domain/errors.ts";
import { RunChannel, type RunChannelOptions } from "../../../src/engine/events/channel.ts";

const MIB = 1024 * 1024;
/** Characters kept for readers, and characters emitted before a graph has to pause. */
const [KEPT_CHARACTERS, PAUSE_CHARACTERS] = [8 * MIB, MIB];

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

/** A log that delays each batch until the test lets it continue. */
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
/** Resolves when no more work can proceed without the test. */
const settled = async () => {
  for (let turns = 0; turns < 4; turns += 1) await new Promise(setImmediate);
};
const watched = (work: Promise<unknown>) => {
  const state = { over: false };
  const over = () => (state.over = true);
  work.then(over, over);
  return state;
};

test("a channel belongs to the attempt that opened it", () => {
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

describe("an event without a reader", () => {
  test("is counted, and only the first one is created", () => {
    const channel = aChannel({ keep: false, firstSeq: 3 });
    let made = 0;
    for (let count = 0; count < 3; count += 1) channel.emit("values", () => `${(made += 1)}`);
    expect([channel.wanted, made, channel.keptCharacters]).toEqual([false, 1, 0]);
    expect(channel.opening).toEqual({ seq: 3, event: "values", data: "1" });
    expect([channel.lastSeq, channel.firstKeptSeq]).toEqual([5, 6]);
    expect(channel.read(5)).toEqual([]);
    expect(channel.read(4)).toBeUndefined();
  });

  test("is counted from the first one on, so a later reader is not told that it missed events", () => {
    const channel = aChannel({ keep: false });
    emit(channel, 1);
    expect([channel.lastSeq, channel.firstKeptSeq]).toEqual([0, 1]);
    channel.attach(() => undefined);
    emit(channel, 1);
    expect(ids(channel.read(0))).toEqual([1]);
  });

  test("is kept once the first reader has come, also after that reader leaves", () => {
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
  test("gets the events after its position", () => {
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

  test("is woken by each event and by the end, until it leaves", () => {
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

  test("is cut off if events that it has not received are gone", () => {
    const channel = aChannel();
    emit(channel, 12, "x".repeat(MIB));
    expect(channel.read(-1)).toBeUndefined();
    const oldest = channel.firstKeptSeq;
    expect(oldest).toBe(5);
    expect(channel.read(oldest - 2)).toBeUndefined();
    expect(ids(channel.read(oldest - 1))).toEqual([5, 6, 7, 8, 9, 10, 11]);
    expect(channel.opening?.seq).toBe(0);
  });

  test("gets the newest event, however large", () => {
    const channel = aChannel();
    emit(channel, 2, "x".repeat(2 * KEPT_CHARACTERS));
    expect(ids(channel.read(0))).toEqual([1]);
  });
});

describe("the memory of a channel", () => {
  test("counts an event's cost besides its data, so small events are bounded, too", () => {
    const channel = aChannel();
    emit(channel, 1_000);
    const each = channel.keptCharacters / 1_000;
    expect(each).toBeGreaterThan(100);
    emit(channel, 150_000);
    expect(channel.keptCharacters).toBeLessThanOrEqual(KEPT_CHARACTERS);
    expect(channel.keptCharacters).toBeGreaterThan(KEPT_CHARACTERS - each);
    const kept = channel.lastSeq + 1 - channel.firstKeptSeq;
    expect(channel.keptCharacters).toBe(kept * each);
    expect(ids(channel.read(channel.firstKeptSeq - 1))).toHaveLength(kept);
  });

  test("keeps all events that are not logged yet, however many", async () => {
    const { log, commit } = aLog();
    const channel = aChannel({ log });
    emit(channel, 12, "x".repeat(MIB));
    expect(channel.firstKeptSeq).toBe(0);
    await settled();
    commit();
    await settled();
    expect(channel.keptCharacters).toBeLessThanOrEqual(KEPT_CHARACTERS);
    expect([channel.lastSeq, channel.firstKeptSeq]).toEqual([11, 5]);
  });
});

describe("a graph that emits endlessly", () => {
  test("has to pause after a MiB, also with empty events", async () => {
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

  test("need not pause for events without a reader", () => {
    const channel = aChannel({ keep: false });
    emit(channel, 3, "x".repeat(PAUSE_CHARACTERS));
    expect(channel.needsPause).toBe(false);
  });

  test("lets the sockets of readers write while it pauses", async () => {
    let turn = false;
    setImmediate(() => (turn = true));
    await aChannel().pause();
    expect(turn).toBe(true);
  });

  test("continues when its events are logged", async () => {
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
  test("readers receive logged events, and new ones go with the next batch", async () => {
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

  test("events are created even without a reader in this process", () => {
    expect(aChannel({ keep: false, log: aLog().log }).wanted).toBe(true);
  });

  test("a refused batch ends everything: readers are cut off, no event follows, and the run can't end", async () => {
    const { log, batches, refuse } = aLog();
    const channel = aChannel({ log });
    let woken = 0;
    channel.attach(() => (woken += 1));
    emit(channel, 1);
    await settled();
    refuse(new Error("the lease is lost"));
    await settled();
    expect([channel.read(-1), woken]).toEqual([undefined, 1]);
    // The channel holds nothing any more.
    expect([channel.keptCharacters, channel.firstKeptSeq]).toEqual([0, 1]);
    channel.emit("values", () => {
      throw new Error("No reader needs it.");
    });
    await settled();
    expect([batches, channel.keptCharacters]).toEqual([[[0]], 0]);
    await expect(channel.endLog()).rejects.toThrow("the lease is lost");
  });
});

describe("work that waits for the log", () => {
  test("waits for the events emitted before it, and for no others", async () => {
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

  test("does not wait without a log, or for events that only readers elsewhere miss", async () => {
    const channel = aChannel();
    emit(channel, 1);
    expect(channel.logged()).toBeUndefined();
    channel.startLogging(() => Promise.reject(new Error("the database refuses them")));
    await channel.logged();
    emit(channel, 1);
    expect([channel.logged(), channel.hasLog, channel.read(-1)?.length]).toEqual([undefined, false, 2]);
    channel.close();
    expect(channel.logged()).toBeUndefined();
  });

  test("is never told that refused events are logged, and neither is later work", async () => {
    const { log, commit, refuse } = aLog();
    const channel = aChannel({ log });
    emit(channel, 1);
    await settled();
    const first = expect(channel.logged()).rejects.toThrow("the database refuses them");
    refuse(new Error("the database refuses them"));
    await first;
    emit(channel, 1);
    commit();
    await expect(channel.logged()).rejects.toThrow("the database refuses them");
    channel.close();
    await expect(channel.logged()).rejects.toThrow("the database refuses them");
  });

  test("is not told that events are logged if the attempt is over before", async () => {
    const { log, commit } = aLog();
    const channel = aChannel({ log });
    emit(channel, 1);
    await settled();
    const waiting = expect(channel.logged()).rejects.toThrow(LeaseLostError);
    channel.close();
    await waiting;
    commit();
    await settled();
    // The channel ignores this event.
    emit(channel, 1);
    await expect(channel.logged()).rejects.toThrow(LeaseLostError);
  });

  test("lets the log wait only while the attempt goes on", async () => {
    const wanted: (() => boolean)[] = [];
    const channel = aChannel({
      log: (_, isWanted) => {
        wanted.push(isWanted);
        return new Promise(() => undefined);
      },
    });
    emit(channel, 1);
    await settled();
    expect(wanted.map((isWanted) => isWanted())).toEqual([true]);
    channel.close();
    expect(wanted.map((isWanted) => isWanted())).toEqual([false]);
  });
});

describe("when another process begins to read", () => {
  test("the log gets the kept events, and readers here receive what is logged from then on", async () => {
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

  test("the log always gets the first event, and only once", async () => {
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

  test("a second request changes nothing: no event is written twice", async () => {
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

  test("a request is too late if the run is about to end or has ended", async () => {
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

describe("an event that has no JSON form", () => {
  const emitBroken = (channel: RunChannel): void => {
    expect(() =>
      channel.emit("values", () => {
        throw new Error("a getter throws");
      }),
    ).toThrow("a getter throws");
  };

  test("uses no id, so the log gets every later event", async () => {
    const { log, batches, commit } = aLog();
    const channel = aChannel({ log });
    emit(channel, 1);
    emitBroken(channel);
    for (let count = 0; count < 3; count += 1) {
      await settled();
      commit();
      await settled();
      emit(channel, 1);
    }
    await settled();
    expect(batches).toEqual([[0], [1], [2], [3]]);
  });

  test("hides no later event from readers", () => {
    const channel = aChannel();
    emit(channel, 1);
    emitBroken(channel);
    emit(channel, 1);
    const [last] = ids(channel.read(0)) ?? [];
    emit(channel, 1);
    expect([last, ids(channel.read(last ?? 0))]).toEqual([1, [2]]);
  });
});

describe("before a run ends", () => {
  test("everything is logged", async () => {
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

  test("events emitted in the moment at which the last batch is committed are logged, too", async () => {
    const batches: (number[] | undefined)[] = [];
    let more = 1;
    const channel = aChannel({
      async log(events) {
        batches.push(ids(events));
      },
    });
    channel.attach(() => {
      // Runs after the writing loop has checked for more events, and before its end is noticed.
      if (more > 0) queueMicrotask(() => emit(channel, (more -= 1) + 1));
    });
    emit(channel, 1);
    await channel.endLog();
    expect([batches.flat(), channel.lastSeq]).toEqual([[0, 1], 1]);
  });

  test("nothing is awaited without a log", async () => {
    const channel = aChannel();
    emit(channel, 1);
    await channel.endLog();
    expect(ids(channel.read(-1))).toEqual([0]);
  });
});
