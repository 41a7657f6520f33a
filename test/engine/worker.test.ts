import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Signal } from "../../src/database/signals.ts";
import type { ClaimedRunRow } from "../../src/database/tables.ts";
import type { StopReason } from "../../src/engine/executors/executor.ts";
import type { RunEnding } from "../../src/engine/attempt/conclusion.ts";
import type { Execution, ExecutionEvents, Executor } from "../../src/engine/attempt/execution.ts";
import type { Queue } from "../../src/queue/queue.ts";
import type { Drained } from "../../src/engine/worker/closing.ts";
import { createWorker } from "../../src/engine/worker/worker.ts";
import { listeningLogger } from "../helpers/parts.ts";

/** Slots, and runs that are taken for them, held or lost: moments that a whole server can't be stopped at. */

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const LOOK_MS = 1_000;
const RESET = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
const REFUSED = Object.assign(new Error("connect ECONNREFUSED"), {
  code: "ECONNREFUSED",
  syscall: "connect",
});
const FASTER = Object.assign(new Error("duplicate key"), { code: "23505" });

const aRun = (run_id: string, more: Partial<ClaimedRunRow> = {}): ClaimedRunRow =>
  ({
    run_id,
    thread_id: `thread of ${run_id}`,
    attempt: 1,
    lost_attempts: 0,
    resumable: false,
    ...more,
  }) as ClaimedRunRow;
const ending = (othersWait = false) => ({ status: "success", othersWait }) as RunEnding;
/** What has been started is done as far as it goes. */
const settled = () => vi.advanceTimersByTimeAsync(0);

interface Here {
  creatorIsHere: boolean;
  /** Its outcome is still to be stored. */
  graphEnded(): void;
  release(ending?: RunEnding): void;
}

/** A worker with two slots, on a queue in memory and graphs that end when the test says so. */
const aWorker = (concurrency = 2) => {
  const waiting: ClaimedRunRow[] = [];
  const suspects: ClaimedRunRow[] = [];
  const asked: number[] = [];
  const rests: number[] = [];
  const did: string[] = [];
  const here = new Map<string, Here>();
  const stops = new Map<string, StopReason[]>();
  let failures: Error[] = [];
  const handingBack: { failure?: Error } = {};
  let unknown: ClaimedRunRow[] | Error = [];
  let held: Promise<void> | undefined;
  let hear: ((signal: Signal) => void) | undefined;
  const queue = {
    graphIds: ["test"],
    isSuspect: (run: ClaimedRunRow) => run.lost_attempts >= 2,
    async claim(_worker: string, _leaseSeconds: number, limit: number) {
      asked.push(limit);
      await held;
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      return waiting.splice(0, limit);
    },
    async claimSuspect(_worker: string, _leaseSeconds: number, restSeconds: number) {
      rests.push(restSeconds);
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      return await Promise.resolve(suspects.shift());
    },
    async listUnknown(_worker: string, known: readonly string[]) {
      did.push(`looked for unknown ones beside ${known.join()}`);
      if (unknown instanceof Error) throw unknown;
      return await Promise.resolve(unknown);
    },
    async handBack({ runId }: { runId: string }) {
      await Promise.resolve();
      const failure = handingBack.failure;
      if (failure !== undefined) throw failure;
      did.push(`handed ${runId} back`);
    },
    giveUpLease({ runId, attempt }: { runId: string; attempt: number }) {
      did.push(`gave the lease of ${runId} up in attempt ${attempt}`);
      return Promise.resolve();
    },
  } as unknown as Queue;
  const executor = {
    suspectsAtOnce: 0,
    execute(run: ClaimedRunRow, creatorIsHere: boolean, events: ExecutionEvents): Execution {
      did.push(`began ${run.run_id}`);
      let end = (_ending?: RunEnding): void => undefined;
      const ended = new Promise<RunEnding | undefined>((resolve) => (end = resolve));
      stops.set(run.run_id, stops.get(run.run_id) ?? []);
      let hasEnded = false;
      const graphEnded = (): void => {
        if (!hasEnded) events.onGraphEnded();
        hasEnded = true;
      };
      here.set(run.run_id, {
        creatorIsHere,
        graphEnded,
        release(ending) {
          graphEnded();
          events.onReleased(ending);
          end(ending);
        },
      });
      return {
        runId: run.run_id,
        threadId: run.thread_id,
        attempt: run.attempt,
        stop: (reason) => void stops.get(run.run_id)?.push(reason),
        wantValues: () => undefined,
        ended,
      };
    },
  } as Partial<Executor> as Executor;
  const { logger, lines } = listeningLogger();
  const worker = createWorker({
    queue,
    executor,
    signals: {
      send: ({ kind, runId }) => void did.push(`said ${kind} ${runId}`),
      subscribeToThread: () => () => undefined,
      subscribe(listener) {
        hear = listener;
        return () => (hear = undefined);
      },
      close: () => Promise.resolve(),
    },
    endings: {
      tell({ run }, here) {
        did.push(`settled ${run.run_id}`);
        if (here?.isHeardElsewhere ?? true) did.push(`said ended ${run.run_id}`);
      },
    },
    processId: "here",
    concurrency,
    leaseSeconds: 10,
    heartbeat: {
      begun: ({ runId }) => void did.push(`holds ${runId}`),
      ended: ({ runId }) => void did.push(`holds ${runId} no longer`),
      renew: () => void did.push("renewed"),
      close: () => Promise.resolve(),
    },
    faults: { reached: (point) => void did.push(point) },
    logger,
  });
  const runOf = (runId: string): Here => {
    const found = here.get(runId);
    if (found === undefined) throw new Error(`${runId} is not executed here.`);
    return found;
  };
  return {
    worker,
    waiting,
    suspects,
    asked,
    rests,
    did,
    stops,
    here,
    handingBack,
    runOf,
    hears: (kind: Signal["kind"], runId: string) => hear?.({ kind, runId } as Signal),
    isListening: () => hear !== undefined,
    fail: (...errors: Error[]) => void (failures = errors),
    holdUnknown: (runs: ClaimedRunRow[] | Error) => void (unknown = runs),
    /** Claims have no answer before the returned function is called. */
    holdClaims(): () => void {
      let release = (): void => undefined;
      held = new Promise((resolve) => (release = resolve));
      return release;
    },
    loud: () =>
      lines
        .map((line) => JSON.parse(line) as { level: number; msg: string })
        .filter(({ level }) => level >= 50)
        .map(({ msg }) => msg),
    async looks(count = 1): Promise<void> {
      await vi.advanceTimersByTimeAsync(count * LOOK_MS);
    },
  };
};
const opened = async (...runs: string[]) => {
  const one = aWorker();
  one.waiting.push(...runs.map((runId) => aRun(runId)));
  one.worker.open();
  await settled();
  return one;
};

describe("slots", () => {
  test("are filled when it opens, and each run is held before anything else", async () => {
    const { worker, did, asked, runOf } = await opened("a", "b", "c");
    expect(did).toEqual(["after-claim", "began a", "holds a", "after-claim", "began b", "holds b"]);
    expect([asked, worker.active, worker.runIds]).toEqual([[2], 2, ["a", "b"]]);
    expect(runOf("a").creatorIsHere).toBe(false);
    expect(worker.execution("a")?.runId).toBe("a");
  });

  test("are filled again as graphs end, before their outcome is stored, but not more than twice", async () => {
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

  test("that are asked for are not asked for twice", async () => {
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

  test("that get free while a claim is under way are asked for by another, three at a time", async () => {
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

  test("are given to those who create runs, until none is left or others wait", async () => {
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

  test("that are given back are filled at once if something was said to wait, each by a claim", async () => {
    const one = await opened();
    one.worker.reserve();
    one.worker.reserve();
    one.hears("available", "a");
    one.waiting.push(aRun("a"));
    await settled();
    expect(one.worker.active).toBe(0);
    one.worker.cancelReservation();
    await settled();
    expect(one.worker.runIds).toEqual(["a"]);
  });

  test("that get free together are for what was said to wait, and not for what comes now", async () => {
    const one = await opened("a", "b");
    await settled();
    // The look into the queue that was full ended, and found nothing more.
    for (const runId of ["a", "b"]) one.runOf(runId).graphEnded();
    await settled();
    for (const runId of ["a", "b"]) one.runOf(runId).release(ending());
    for (const runId of ["c", "d"]) {
      one.worker.reserve();
      one.worker.start(aRun(runId));
    }
    one.asked.length = 0;
    one.hears("available", "e");
    one.holdClaims();
    one.runOf("c").graphEnded();
    one.runOf("d").graphEnded();
    expect(one.asked).toEqual([1, 1]);
    expect(one.worker.reserve()).toBeUndefined();
  });

  test("none: a process that only answers asks for nothing", async () => {
    const { worker, asked, looks, rests } = aWorker(0);
    worker.open();
    await looks(3);
    worker.wake();
    expect([asked, rests]).toEqual([[], []]);
    expect(worker.reserve()).toBeUndefined();
  });

  test("are looked for again when a run that others wait behind has ended, or goes on elsewhere, and not else", async () => {
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

describe("a claim", () => {
  test("that another worker was faster at is made again at once", async () => {
    const one = aWorker();
    one.fail(FASTER);
    one.waiting.push(aRun("a"));
    one.worker.open();
    await settled();
    expect(one.worker.runIds).toEqual(["a"]);
    expect(one.loud()).toEqual([]);
  });

  test("that is refused for the moment is made again soon, and gives its slots back meanwhile", async () => {
    const one = aWorker();
    one.fail(REFUSED);
    one.waiting.push(aRun("a"));
    one.worker.open();
    await settled();
    expect([one.worker.reserve(), one.worker.reserve()]).not.toContain(undefined);
    one.worker.cancelReservation();
    one.worker.cancelReservation();
    await vi.advanceTimersByTimeAsync(60);
    expect(one.worker.runIds).toEqual(["a"]);
    expect(one.loud()).toEqual([]);
    // Nothing of it can have been committed.
    await one.looks(2);
    expect(one.did.join()).not.toContain("looked for unknown");
  });

  test("is made again as soon after an outage as it was after the one before", async () => {
    const one = aWorker();
    one.fail(...Array<Error>(6).fill(REFUSED));
    one.worker.open();
    await vi.advanceTimersByTimeAsync(LOOK_MS * 5);
    one.fail(REFUSED);
    one.worker.wake();
    await settled();
    one.waiting.push(aRun("a"));
    await vi.advanceTimersByTimeAsync(51);
    expect(one.worker.runIds).toEqual(["a"]);
  });

  test("takes what waits for a slot that was given back meanwhile, too", async () => {
    const one = aWorker(3);
    one.worker.reserve();
    const release = one.holdClaims();
    one.waiting.push(aRun("a"), aRun("b"), aRun("c"));
    one.worker.wake();
    one.worker.cancelReservation();
    release();
    await settled();
    expect(one.worker.runIds).toEqual(["a", "b", "c"]);
  });

  test("that fails for another reason is told, and made again at the next look", async () => {
    const one = aWorker();
    one.fail(new Error("out of order"));
    one.waiting.push(aRun("a"));
    one.worker.open();
    await vi.advanceTimersByTimeAsync(LOOK_MS - 1);
    expect(one.worker.active).toBe(0);
    expect(one.loud()).toEqual(["runs could not be claimed"]);
    await vi.advanceTimersByTimeAsync(1);
    expect(one.worker.runIds).toEqual(["a"]);
  });
});

describe("the answer to a claim was lost:", () => {
  const withLostAnswer = async () => {
    const one = aWorker();
    one.fail(RESET);
    one.worker.open();
    await settled();
    return one;
  };
  const looked = (did: string[]): number => did.filter((what) => what.startsWith("looked")).length;

  test("what this process holds without knowing it is executed, once", async () => {
    const one = await withLostAnswer();
    one.holdUnknown([aRun("a")]);
    await one.looks(2);
    expect(one.did.filter((what) => what === "began a")).toHaveLength(1);
    expect(one.worker.runIds).toEqual(["a"]);
    // The answer comes after all, or the run has ended and the list is older.
    one.runOf("a").release(ending());
    await one.looks(1);
    one.worker.reserve();
    expect(one.worker.start(aRun("a"))).toBeUndefined();
    one.waiting.push(aRun("a"));
    one.worker.wake();
    await settled();
    expect(one.did.filter((what) => what === "began a")).toHaveLength(1);
    // A later attempt is another thing.
    one.waiting.push(aRun("a", { attempt: 2 }));
    one.worker.wake();
    await settled();
    expect(one.did.filter((what) => what === "began a")).toHaveLength(2);
  });

  test("what is executed already is left alone, and what has no slot is handed back", async () => {
    const one = await withLostAnswer();
    one.worker.reserve();
    one.worker.start(aRun("a"));
    one.worker.reserve();
    one.holdUnknown([aRun("a"), aRun("b")]);
    await one.looks(1);
    expect(one.did).toContain("looked for unknown ones beside a");
    expect(one.did.filter((what) => what === "began a")).toHaveLength(1);
    expect(one.did).toContain("handed b back");
    expect(one.worker.runIds).toEqual(["a"]);
  });

  test.each<[string, (one: ReturnType<typeof aWorker>) => void]>([
    [
      "claimed",
      (one) => {
        one.waiting.push(aRun("a"));
        one.worker.wake();
      },
    ],
    ["created", ({ worker }) => void (worker.reserve(), worker.start(aRun("a")))],
    ["found by its creator", ({ worker }) => void worker.adopt(aRun("a"))],
  ])(
    "what was %s and executed here before, and whose outcome could not be stored, is left to another attempt",
    async (_how, begin) => {
      const one = await withLostAnswer();
      begin(one);
      await settled();
      one.runOf("a").release(undefined);
      one.holdUnknown([aRun("a")]);
      await one.looks(1);
      expect(one.did).toContain("gave the lease of a up in attempt 1");
      expect(one.worker.adopt(aRun("a"))).toBeUndefined();
      one.worker.reserve();
      expect(one.worker.start(aRun("a"))).toBeUndefined();
      expect(one.did.filter((what) => what === "began a")).toHaveLength(1);
      one.waiting.push(aRun("a", { attempt: 2 }));
      one.worker.wake();
      await settled();
      expect(one.did.filter((what) => what === "began a")).toHaveLength(2);
    },
  );

  test("it is looked for three seconds long, and again after another lost answer", async () => {
    const one = await withLostAnswer();
    await one.looks(10);
    expect(looked(one.did)).toBe(4);
    one.fail(RESET);
    one.worker.wake();
    await one.looks(10);
    expect(looked(one.did)).toBe(8);
  });

  test("it is looked for on while the database can't be asked", async () => {
    const one = await withLostAnswer();
    one.holdUnknown(REFUSED);
    await one.looks(10);
    one.holdUnknown([aRun("a")]);
    await one.looks(1);
    expect(one.worker.runIds).toEqual(["a"]);
    expect(one.loud()).toEqual([]);
  });

  test("it is looked for on while what has no slot can't be handed back", async () => {
    const one = await withLostAnswer();
    one.worker.reserve();
    one.worker.reserve();
    one.handingBack.failure = REFUSED;
    one.holdUnknown([aRun("a")]);
    await one.looks(10);
    delete one.handingBack.failure;
    await one.looks(1);
    expect(one.did).toContain("handed a back");
  });

  test("that of a suspect counts, too", async () => {
    const one = await opened();
    one.fail(RESET);
    await one.looks(1);
    one.holdUnknown([aRun("a")]);
    await one.looks(1);
    expect(one.worker.runIds).toEqual(["a"]);
  });
});

describe("a suspect", () => {
  test("is taken by an idle process after half a lease, alone, and nothing begins beside it for half a lease", async () => {
    const one = await opened();
    one.suspects.push(aRun("suspect", { lost_attempts: 2 }), aRun("other", { lost_attempts: 2 }));
    await one.looks(1);
    expect(one.rests).toEqual([5]);
    expect(one.worker.runIds).toEqual(["suspect"]);
    one.waiting.push(aRun("a"));
    expect(one.worker.reserve()).toBeUndefined();
    await one.looks(4);
    expect(one.worker.runIds).toEqual(["suspect"]);
    await one.looks(2);
    // One slot is left: it is for the others, and no second suspect is looked for.
    expect(one.worker.runIds).toEqual(["suspect", "a"]);
    expect(one.rests).toEqual([5]);
    one.runOf("suspect").release(ending());
    await one.looks(1);
    expect(one.rests).toHaveLength(2);
  });

  test.each<[string, (one: ReturnType<typeof aWorker>) => void]>([
    ["executes a run", ({ worker }) => void (worker.reserve(), worker.start(aRun("a")))],
    ["is about to", ({ worker }) => void worker.reserve()],
    [
      "is asking for runs",
      (one) => {
        one.holdClaims();
        one.worker.reserve();
        one.worker.wake();
        one.worker.cancelReservation();
      },
    ],
  ])("waits for six leases while a process %s", async (_what, keepBusy) => {
    const one = aWorker(3);
    one.worker.open();
    await settled();
    keepBusy(one);
    await one.looks(1);
    expect(one.rests).toEqual([60]);
  });

  test("is not looked for while another is executed, also when others may begin beside that", async () => {
    const one = await opened();
    one.suspects.push(aRun("suspect", { lost_attempts: 2 }), aRun("other", { lost_attempts: 2 }));
    await one.looks(10);
    expect([one.rests, one.worker.runIds]).toEqual([[5], ["suspect"]]);
  });

  test("is not looked for without a free slot", async () => {
    const { looks, rests } = await opened("a", "b");
    await looks(3);
    expect(rests).toEqual([]);
  });
});

describe("signals", () => {
  test("wake it, and are heard of runs that it executes only", async () => {
    const one = await opened();
    one.waiting.push(aRun("a"));
    one.hears("events", "a");
    await settled();
    expect(one.worker.active).toBe(0);
    one.hears("available", "a");
    await settled();
    expect(one.worker.runIds).toEqual(["a"]);
    one.hears("cancel", "elsewhere");
    one.hears("ended", "a");
    expect(one.did).not.toContain("renewed");
    one.hears("cancel", "a");
    expect(one.did).toContain("renewed");
  });

  test.each(["awaited", "watch"] as const)(
    "%s: of its end is told, also who asks just after it",
    async (kind) => {
      const one = await opened();
      const ends = () => one.did.filter((what) => what.startsWith("said ended"));
      for (const runId of ["a", "b"]) {
        one.worker.reserve();
        one.worker.start(aRun(runId));
      }
      one.hears(kind, "a");
      for (const runId of ["a", "b"]) one.runOf(runId).release(ending());
      expect(ends()).toEqual(["said ended a"]);
      expect(one.did).toContain("settled b");
      one.hears("events", "b");
      expect(ends()).toEqual(["said ended a"]);
      await one.looks(1);
      one.hears(kind, "b");
      expect(ends()).toEqual(["said ended a", "said ended b"]);
      await one.looks(1);
      one.hears(kind, "b");
      expect(ends()).toHaveLength(2);
    },
  );

  test("of an end are sent for what came through the queue, and for what can be resumed", async () => {
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

describe("a run that is out of its hands", () => {
  test("is not held any longer; what goes on elsewhere is not settled", async () => {
    const one = await opened("a", "b");
    one.runOf("a").release(undefined);
    one.runOf("b").release(ending());
    expect(one.did).toEqual(
      expect.arrayContaining(["holds a no longer", "holds b no longer", "settled b", "said ended b"]),
    );
    expect(one.did).not.toContain("settled a");
    expect([one.worker.active, one.worker.execution("a")]).toEqual([0, undefined]);
  });

  test("and in them again, in a later attempt, stays", async () => {
    const one = await opened("a");
    const first = one.runOf("a");
    one.waiting.push(aRun("a", { attempt: 2 }));
    one.worker.wake();
    await settled();
    one.hears("awaited", "a");
    first.release(undefined);
    expect(one.worker.execution("a")?.attempt).toBe(2);
    one.runOf("a").release(ending());
    expect(one.did).toContain("said ended a");
  });

  test("because its thread is gone is stopped, and no other", async () => {
    const { worker, stops } = await opened("a", "b");
    worker.abandonThreads(["thread of a"]);
    expect([stops.get("a"), stops.get("b")]).toEqual([[{ kind: "lease-lost" }], []]);
  });
});

describe("a worker that is closed", () => {
  const closing = (one: ReturnType<typeof aWorker>, ...given: Parameters<typeof one.worker.close>) => {
    const state: { closed: boolean; drained?: Drained } = { closed: false };
    void one.worker.close(...given).then((drained) => Object.assign(state, { closed: true, drained }));
    return state;
  };

  test("takes nothing more, lets its runs end, then hands them back, and waits for that", async () => {
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
    expect(one.rests).toEqual([]);
    one.runOf("b").release(undefined);
    await settled();
    expect(state).toEqual({ closed: true, drained: { ended: 1, handedBack: 1 } });
    expect(vi.getTimerCount()).toBe(0);
  });

  test("because its process fails says so to its runs", async () => {
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

  test("hands back what a claim under way brings", async () => {
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

  test("hands back a run whose creation was under way", async () => {
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
