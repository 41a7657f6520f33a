import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ExecutedRunRow } from "../../src/platform/database/tables.ts";
import type { AttemptResult } from "../../src/engine/executors/executor.ts";
import type { RunEnding } from "../../src/engine/attempt/conclusion.ts";
import type { Executor } from "../../src/engine/attempt/execution.ts";
import type { Queue } from "../../src/engine/queue/queue.ts";
import type { RunSelector } from "../../src/engine/queue/attempts.ts";
import type { LostRunRow } from "../../src/engine/queue/sql/requeue.ts";
import { startRecovery } from "../../src/engine/recovery.ts";
import { listeningLogger } from "../helpers/parts.ts";

/** The steps of a sweep in order, and when it does not treat old leases as lost. The clock is moved by hand. */

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const SWEEP_MS = 2_000;
const POLL_EVERY_MS = 10;
const AWAY = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });

interface Found {
  lost?: LostRunRow[];
  forgotten?: RunSelector[];
  abandoned?: ExecutedRunRow[];
  later?: boolean;
}

/** Sweeps over an in-memory queue; `did` lists its steps, one line for each. */
const startSweeping = (
  options: {
    endingOf?: (run: ExecutedRunRow) => Promise<RunEnding | undefined>;
  } = {},
) => {
  const did: string[] = [];
  const counted = { lost: 0 };
  const results = new Map<string, AttemptResult>();
  let found: Found = {};
  let failure: Error | undefined;
  let hang: Promise<void> | undefined;
  const step = async (what: string): Promise<void> => {
    await hang;
    if (failure !== undefined) throw failure;
    did.push(what);
  };
  const queue = {
    goesAlone: ({ lost_attempts }) => lost_attempts === 2,
    assertWritable: () => step("asked whether it takes writes"),
    async findToRecover() {
      await step("looked");
      return {
        lost: found.lost !== undefined || found.abandoned !== undefined,
        later: found.later === true,
        behind: found.forgotten !== undefined,
      };
    },
    async requeueLost() {
      await step("took leases for lost");
      return found.lost ?? [];
    },
    async putBehind() {
      for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
      did.push("put behind");
    },
    async advanceForgotten() {
      await step("advanced");
      return found.forgotten ?? [];
    },
    async listAbandoned() {
      await step("listed abandoned");
      return found.abandoned ?? [];
    },
  } as Partial<Queue> as Queue;
  const ending = { status: "error", error: null } as RunEnding;
  const executor = {
    async concludeAbandoned(run: ExecutedRunRow, result: AttemptResult) {
      results.set(run.run_id, result);
      return options.endingOf === undefined ? ending : await options.endingOf(run);
    },
  } as Partial<Executor> as Executor;
  const { logger, lines } = listeningLogger();
  const recovery = startRecovery(
    {
      queue,
      executor,
      endings: { publish: ({ run }) => void did.push(`ended ${run.run_id}`) },
      signals: {
        send: ({ kind, runId }) => void did.push(`${kind} ${runId}`),
        subscribe: () => () => undefined,
        subscribeToThread: () => () => undefined,
        close: () => Promise.resolve(),
      },
      leaseSeconds: 10,
      metrics: { attemptsLost: (_process, count) => void (counted.lost += count) },
      logger,
    },
    SWEEP_MS / 1_000,
  );
  return {
    recovery,
    did,
    counted,
    results,
    said: (level: number) =>
      lines
        .map((line) => JSON.parse(line) as { level: number; msg: string })
        .filter((line) => line.level >= level)
        .map(({ msg }) => msg),
    find: (what: Found) => (found = what),
    fail: (error: Error | undefined) => (failure = error),
    /** The next statement has no answer before the returned function is called. */
    holdUp(): () => void {
      let release = (): void => undefined;
      hang = new Promise((resolve) => (release = resolve));
      return release;
    },
    /** Moves the clock until a step was done, and returns the milliseconds. */
    async untilSomethingWasDone(): Promise<number> {
      did.length = 0;
      for (let passedMs = 0; ; passedMs += POLL_EVERY_MS) {
        if (did.length > 0) return passedMs;
        if (passedMs > 60 * SWEEP_MS) throw new Error("Nothing was done for two minutes.");
        await vi.advanceTimersByTimeAsync(POLL_EVERY_MS);
      }
    },
    /** Runs this many due sweeps, and returns their steps. */
    async sweeps(count = 1): Promise<string[]> {
      did.length = 0;
      await vi.advanceTimersByTimeAsync(count * SWEEP_MS);
      return [...did];
    },
  };
};

/** With nothing to recover. */
const SWEEP = ["looked"];
const lostRun = (run_id: string) => ({ run_id, thread_id: "t", attempt: 1 }) as LostRunRow;
const abandoned = (run_id: string, more: Partial<ExecutedRunRow> = {}) =>
  ({ run_id, cancel_action: null, lost_attempts: 2, ...more }) as ExecutedRunRow;

describe("a sweep", () => {
  test("announces the runs that may start, and those that it ended", async () => {
    const { find, sweeps, results, counted, recovery } = startSweeping();
    find({
      lost: [lostRun("lost")],
      forgotten: [{ threadId: "thread", runId: "forgotten" }],
      later: true,
      abandoned: [abandoned("given up"), abandoned("cancelled", { cancel_action: "rollback" })],
    });
    expect(await sweeps()).toEqual([
      "looked",
      "took leases for lost",
      "available lost",
      "put behind",
      "advanced",
      "available forgotten",
      "listed abandoned",
      ...["ended given up", "available given up"],
      ...["ended cancelled", "available cancelled"],
    ]);
    expect(results.get("given up")).toMatchObject({
      kind: "failed",
      error: {
        name: "MaxAttemptsError",
        message: "The run was given up after 3 attempts: each lost its process before it ended.",
      },
    });
    expect(results.get("cancelled")).toEqual({
      kind: "stopped",
      reason: { kind: "cancel", action: "rollback" },
    });
    expect(counted.lost).toBe(3);
    await recovery.close();
  });

  test("only looks while nothing is to recover, and then does no more than needed", async () => {
    const { find, sweeps, recovery } = startSweeping();
    expect(await sweeps(2)).toEqual(["looked", "looked"]);
    find({ later: true });
    expect(await sweeps()).toEqual(["looked", "put behind"]);
    find({ forgotten: [] });
    expect(await sweeps()).toEqual(["looked", "advanced"]);
    find({ lost: [] });
    expect(await sweeps()).toEqual(["looked", "took leases for lost", "listed abandoned"]);
    await recovery.close();
  });

  test("ends the others when one can't be ended, and announces no run that another process ended", async () => {
    const { find, sweeps, said, recovery } = startSweeping({
      async endingOf({ run_id }) {
        await Promise.resolve();
        if (run_id === "broken") throw new Error("out of order");
        return run_id === "elsewhere" ? undefined : ({ status: "error", error: null } as RunEnding);
      },
    });
    find({ abandoned: [abandoned("broken"), abandoned("elsewhere"), abandoned("good")] });
    expect(await sweeps()).toEqual([
      ...["looked", "took leases for lost", "listed abandoned"],
      ...["ended good", "available good"],
    ]);
    expect(said(50)).toEqual(["a run that lost its process could not be ended"]);
    expect(said(40)).toHaveLength(2);
    await recovery.close();
  });

  test("ends early when the database goes away, without an error in the log", async () => {
    const tried: string[] = [];
    const { find, sweeps, said, recovery } = startSweeping({
      endingOf({ run_id }) {
        tried.push(run_id);
        return Promise.reject(AWAY);
      },
    });
    find({ abandoned: [abandoned("first"), abandoned("second")] });
    await sweeps();
    expect(tried).toEqual(["first"]);
    expect(said(40)).toEqual([]);
    await recovery.close();
  });

  test("that fails for another reason logs an error", async () => {
    const { fail, sweeps, said, recovery } = startSweeping();
    fail(new Error("out of order"));
    await sweeps();
    expect(said(50)).toEqual(["the sweep for lost runs failed"]);
    await recovery.close();
  });
});

describe("old leases do not count as lost", () => {
  test("in the round after a delayed one: their owners may have been delayed, too", async () => {
    const { sweeps, find, holdUp, recovery } = startSweeping();
    expect(await sweeps(2)).toEqual([...SWEEP, ...SWEEP]);
    const release = holdUp();
    find({ lost: [lostRun("its lease is old")] });
    await sweeps(4);
    release();
    // The end of the delayed round, whose result is older, and one more round.
    const rounds = await sweeps(1);
    expect(rounds.filter((what) => what.startsWith("asked"))).toHaveLength(1);
    expect(rounds).not.toContain("took leases for lost");
    find({});
    expect(await sweeps(2)).toEqual([...SWEEP, ...SWEEP]);
    await recovery.close();
  });

  test("for half a lease after an outage, from the time when the database accepts writes again", async () => {
    const { sweeps, fail, said, did, untilSomethingWasDone, recovery } = startSweeping();
    const outage = async (): Promise<void> => {
      fail(AWAY);
      expect(await sweeps(10)).toEqual([]);
      fail(undefined);
      await untilSomethingWasDone();
      expect(did).toEqual(["asked whether it takes writes"]);
      const sparedMs = await untilSomethingWasDone();
      expect(did).toEqual(SWEEP);
      expect(sparedMs).toBeGreaterThanOrEqual(5_000 - POLL_EVERY_MS);
      expect(sparedMs).toBeLessThanOrEqual(5_000 + SWEEP_MS + POLL_EVERY_MS);
      expect(await sweeps(2)).toEqual([...SWEEP, ...SWEEP]);
    };
    expect(await sweeps()).toEqual(SWEEP);
    await outage();
    await outage();
    expect(said(40)).toEqual([]);
    await recovery.close();
  });

  test("for one round only if nothing failed, also after an outage", async () => {
    const { sweeps, fail, holdUp, untilSomethingWasDone, recovery } = startSweeping();
    fail(AWAY);
    await sweeps(10);
    fail(undefined);
    await untilSomethingWasDone();
    await untilSomethingWasDone();
    const release = holdUp();
    await sweeps(4);
    release();
    expect(await sweeps(1)).toContain("asked whether it takes writes");
    expect(await sweeps(1)).toEqual(SWEEP);
    await recovery.close();
  });
});
