import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Drained } from "../../src/engine/worker/worker.ts";
import { aRun, aWorker, ending, opened, settled } from "./worker-in-memory.ts";

/** Slots, and owned or lost runs, in moments at which a whole server cannot be paused. */

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("slots", () => {
  test("are filled when the worker opens, and each run is held before anything else", async () => {
    const { worker, did, asked, runOf } = await opened("a", "b", "c");
    expect(did).toEqual(["after-claim", "began a", "holds a", "after-claim", "began b", "holds b"]);
    expect([asked, worker.active, worker.runIds]).toEqual([[2], 2, ["a", "b"]]);
    expect(runOf("a").creatorIsHere).toBe(false);
    expect(worker.execution("a")?.runId).toBe("a");
  });

  test("are filled again as graphs end, before their outcome is stored, but at most twice", async () => {
    const { worker, asked, runOf, waiting } = await opened("a", "b", "c", "d", "e", "f");
    runOf("a").graphEnded();
    await settled();
    expect([asked, worker.runIds]).toEqual([
      [2, 1],
      ["a", "b", "c"],
    ]);
    for (const runId of ["b", "c"]) runOf(runId).graphEnded();
    await settled();
    expect(worker.runIds).toEqual(["a", "b", "c", "d"]);
    expect(waiting).toHaveLength(2);
    runOf("a").release(ending());
    await settled();
    expect(worker.runIds).toEqual(["b", "c", "d", "e"]);
  });

  test("that are requested are not requested twice", async () => {
    const one = await opened();
    const release = one.holdClaims();
    one.waiting.push(aRun("a"));
    one.worker.wake();
    one.worker.wake();
    expect(one.worker.reserve()).toBeUndefined();
    await settled();
    expect(one.asked).toEqual([2, 2]);
    release();
    await settled();
    expect(one.worker.runIds).toEqual(["a"]);
  });

  test("that get free during a claim are requested by another one, up to three claims at a time", async () => {
    const one = aWorker(5);
    const release = one.holdClaims();
    const reserved = [1, 2, 3, 4].map(() => one.worker.reserve());
    expect(reserved.every((slot) => slot !== undefined)).toBe(true);
    one.worker.wake();
    for (let slot = 1; slot <= reserved.length; slot += 1) {
      one.worker.cancelReservation();
      one.worker.wake();
    }
    expect(one.asked).toEqual([1, 1, 1]);
    release();
    await settled();
    expect(one.asked.slice(3).length).toBeGreaterThan(0);
  });

  test("are given to creators of runs, until none is left or others wait", async () => {
    const { worker, waiting } = await opened();
    expect(worker.reserve()).toEqual({ workerId: "here", leaseSeconds: 10, graphIds: ["test"] });
    expect(worker.reserve()).toBeDefined();
    expect(worker.reserve()).toBeUndefined();
    worker.cancelReservation();
    const execution = worker.start(aRun("a"));
    expect(execution).toMatchObject({ runId: "a" });
    expect(worker.start(aRun("a"))).toBe(execution);
    waiting.push(aRun("b"), aRun("c"));
    worker.wake();
    await settled();
    expect(worker.reserve()).toBeUndefined();
  });

  test("that are given back are filled at once if a run was announced, each by one claim", async () => {
    const one = await opened();
    one.worker.reserve();
    one.worker.reserve();
    one.signal("available", "a");
    one.waiting.push(aRun("a"));
    await settled();
    expect(one.worker.active).toBe(0);
    one.worker.cancelReservation();
    await settled();
    expect(one.worker.runIds).toEqual(["a"]);
  });

  test("that get free together are for the announced runs, and not for new ones", async () => {
    const one = await opened("a", "b");
    await settled();
    // The poll that found no free slot has ended, and found nothing more.
    for (const runId of ["a", "b"]) one.runOf(runId).graphEnded();
    await settled();
    for (const runId of ["a", "b"]) one.runOf(runId).release(ending());
    for (const runId of ["c", "d"]) {
      one.worker.reserve();
      one.worker.start(aRun(runId));
    }
    one.asked.length = 0;
    one.signal("available", "e");
    one.holdClaims();
    one.runOf("c").graphEnded();
    one.runOf("d").graphEnded();
    expect(one.asked).toEqual([1, 1]);
    expect(one.worker.reserve()).toBeUndefined();
  });

  test("can be 0: a process that only answers claims nothing", async () => {
    const { worker, asked, looks } = aWorker(0);
    worker.open();
    await looks(3);
    worker.wake();
    expect(asked).toEqual([]);
    expect(worker.reserve()).toBeUndefined();
  });

  test("are searched for again only when a run with others behind it has ended, or continues elsewhere", async () => {
    const { worker, asked, runOf } = await opened("a");
    asked.length = 0;
    runOf("a").release(ending());
    await settled();
    expect(asked).toEqual([]);
    worker.reserve();
    worker.start(aRun("b"));
    runOf("b").release(ending(true));
    await settled();
    expect(asked).toEqual([2]);
    worker.reserve();
    worker.start(aRun("c"));
    runOf("c").release(undefined);
    await settled();
    expect(asked).toEqual([2, 2]);
  });
});

describe("signals", () => {
  test("wake the worker, and are received only for runs that it executes", async () => {
    const one = await opened();
    one.waiting.push(aRun("a"));
    one.signal("events", "a");
    await settled();
    expect(one.worker.active).toBe(0);
    one.signal("available", "a");
    await settled();
    expect(one.worker.runIds).toEqual(["a"]);
    one.signal("cancel", "elsewhere");
    one.signal("ended", "a");
    expect(one.did).not.toContain("renewed");
    one.signal("cancel", "a");
    expect(one.did).toContain("renewed");
  });

  test.each(["awaited", "watch"] as const)(
    "%s: its end is announced, also to a reader that asks just after it",
    async (kind) => {
      const one = await opened();
      const ends = () => one.did.filter((what) => what.startsWith("said ended"));
      for (const runId of ["a", "b"]) {
        one.worker.reserve();
        one.worker.start(aRun(runId));
      }
      one.signal(kind, "a");
      for (const runId of ["a", "b"]) one.runOf(runId).release(ending());
      expect(ends()).toEqual(["said ended a"]);
      expect(one.did).toContain("settled b");
      one.signal("events", "b");
      expect(ends()).toEqual(["said ended a"]);
      await one.looks(1);
      one.signal(kind, "b");
      expect(ends()).toEqual(["said ended a", "said ended b"]);
      await one.looks(1);
      one.signal(kind, "b");
      expect(ends()).toHaveLength(2);
    },
  );

  test("of an end are sent for runs from the queue, and for resumable ones", async () => {
    const one = await opened("queued");
    one.worker.reserve();
    one.worker.start(aRun("resumable", { resumable: true }));
    for (const runId of ["queued", "resumable"]) one.runOf(runId).release(ending());
    expect(one.did.filter((what) => what.startsWith("said"))).toEqual([
      "said ended queued",
      "said ended resumable",
    ]);
  });
});

describe("a run that left this worker", () => {
  test("is not held any longer, and continues elsewhere unsettled", async () => {
    const one = await opened("a", "b");
    one.runOf("a").release(undefined);
    one.runOf("b").release(ending());
    expect(one.did).toEqual(
      expect.arrayContaining(["holds a no longer", "holds b no longer", "settled b", "said ended b"]),
    );
    expect(one.did).not.toContain("settled a");
    expect([one.worker.active, one.worker.execution("a")]).toEqual([0, undefined]);
  });

  test("and came back in a later attempt stays", async () => {
    const one = await opened("a");
    const first = one.runOf("a");
    one.waiting.push(aRun("a", { attempt: 2 }));
    one.worker.wake();
    await settled();
    one.signal("awaited", "a");
    first.release(undefined);
    expect(one.worker.execution("a")?.attempt).toBe(2);
    one.runOf("a").release(ending());
    expect(one.did).toContain("said ended a");
  });

  test("because its thread is gone is stopped, and no other is", async () => {
    const { worker, stops } = await opened("a", "b");
    worker.abandonThreads(["thread of a"]);
    expect([stops.get("a"), stops.get("b")]).toEqual([[{ kind: "lease-lost" }], []]);
  });
});

describe("a closed worker", () => {
  const closing = (one: ReturnType<typeof aWorker>, ...given: Parameters<typeof one.worker.close>) => {
    const state: { closed: boolean; drained?: Drained } = { closed: false };
    void one.worker.close(...given).then((drained) => Object.assign(state, { closed: true, drained }));
    return state;
  };

  test("claims nothing more, lets its runs end, then hands them back, and waits for that", async () => {
    const one = await opened("a", "b");
    const state = closing(one, 5);
    one.waiting.push(aRun("c"));
    one.worker.wake();
    expect(one.worker.reserve()).toBeUndefined();
    one.runOf("a").release(ending(true));
    await vi.advanceTimersByTimeAsync(4_999);
    expect([one.asked, one.stops.get("b"), one.isListening()]).toEqual([[2], [], false]);
    await vi.advanceTimersByTimeAsync(1);
    expect(one.stops.get("b")).toEqual([{ kind: "shutdown" }]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(state.closed).toBe(false);
    one.runOf("b").release(undefined);
    await settled();
    expect(state).toEqual({ closed: true, drained: { ended: 1, handedBack: 1 } });
    expect(vi.getTimerCount()).toBe(0);
  });

  test("reports to its runs that its process fails", async () => {
    const one = await opened("a");
    closing(one, 0, { failed: true });
    await settled();
    expect(one.stops.get("a")).toEqual([{ kind: "process-failed" }]);
  });

  test("waits no longer than its runs take", async () => {
    const one = await opened("a");
    const state = closing(one, 60);
    expect(one.worker.reserve()).toBeUndefined();
    one.runOf("a").release(ending());
    await settled();
    expect(state.closed).toBe(true);
    expect(one.stops.get("a")).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("hands back the runs of a running claim", async () => {
    const one = await opened();
    const release = one.holdClaims();
    one.waiting.push(aRun("late"));
    one.worker.wake();
    const state = closing(one, 0);
    await settled();
    expect(state.closed).toBe(false);
    release();
    await settled();
    expect(one.stops.get("late")).toEqual([{ kind: "shutdown" }]);
    one.runOf("late").release(undefined);
    await settled();
    expect(state).toEqual({ closed: true, drained: { ended: 0, handedBack: 1 } });
  });

  test("hands back a run that is being created", async () => {
    const one = await opened();
    one.worker.reserve();
    const state = closing(one, 0);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(state.closed).toBe(false);
    one.worker.start(aRun("created"));
    await vi.advanceTimersByTimeAsync(10);
    expect(one.stops.get("created")).toEqual([{ kind: "shutdown" }]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(state.closed).toBe(false);
    expect(one.stops.get("created")).toHaveLength(1);
    one.runOf("created").release(undefined);
    await vi.advanceTimersByTimeAsync(10);
    expect(state.closed).toBe(true);
  });
});
