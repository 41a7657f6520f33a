import { expect, test } from "vitest";
import type { ClaimedRunRow } from "../../src/platform/database/tables.ts";
import type { ExecutionEvents } from "../../src/engine/attempt/execution.ts";
import { createRunsInHand, type WorkerOptions } from "../../src/engine/worker/runs-in-hand.ts";
import type { WaitersElsewhere } from "../../src/engine/worker/waiters-elsewhere.ts";
import { createSuspects } from "../../src/engine/worker/suspects.ts";

/** Slots of a process for two parallel runs; `atOnce` suspects have processes of their own. */
const slotsWith = (atOnce: number) => {
  const begun = new Map<string, ExecutionEvents>();
  const suspects = createSuspects({
    isSuspect: (run) => run.lost_attempts > 0,
    leaseSeconds: 0.001,
    atOnce,
    onJoinable: () => undefined,
  });
  const options = {
    concurrency: 2,
    executor: {
      execute: (run: ClaimedRunRow, _: boolean, events: ExecutionEvents) => {
        begun.set(run.run_id, events);
        return { runId: run.run_id };
      },
    },
    heartbeat: { begun: () => undefined, ended: () => undefined },
    endings: { tell: () => undefined },
    faults: { reached: () => undefined },
  } as unknown as WorkerOptions;
  const waiters = { left: () => false, endedUnnoticed: () => undefined } as unknown as WaitersElsewhere;
  const inHand = createRunsInHand(options, suspects, waiters, {
    onGraphEnded: () => undefined,
    onReleased: () => undefined,
  });
  const begin = (runId: string, lostAttempts: number): ExecutionEvents => {
    inHand.begin({ run_id: runId, lost_attempts: lostAttempts } as ClaimedRunRow, false);
    return begun.get(runId)!;
  };
  return { inHand, begin };
};

test("a suspect in a process of its own never takes a slot", () => {
  const { inHand, begin } = slotsWith(1);
  const suspect = begin("suspect", 1);
  expect(inHand.freeSlots).toBe(2);
  const usual = begin("usual", 0);
  expect(inHand.freeSlots).toBe(1);
  suspect.onGraphEnded();
  expect(inHand.freeSlots).toBe(1);
  suspect.onReleased(undefined);
  expect(inHand.freeSlots).toBe(1);
  usual.onGraphEnded();
  expect(inHand.freeSlots).toBe(2);
  usual.onReleased(undefined);
  expect(inHand.freeSlots).toBe(2);
});

test("a suspect that shares the process takes a slot as soon as others may begin beside it", async () => {
  const { inHand, begin } = slotsWith(0);
  begin("suspect", 1);
  await expect.poll(() => inHand.freeSlots).toBe(1);
});
