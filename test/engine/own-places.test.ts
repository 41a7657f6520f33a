import { expect, test } from "vitest";
import type { ClaimedRunRow } from "../../src/platform/database/tables.ts";
import type { ExecutionEvents } from "../../src/engine/attempt/execution.ts";
import { createRunsInHand, type RunsInHandParts } from "../../src/engine/worker/runs-in-hand.ts";
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
  const inHand = createRunsInHand({
    concurrency: 2,
    executor: {
      execute: (run: ClaimedRunRow, _: boolean, events: ExecutionEvents) => {
        begun.set(run.run_id, events);
        return { runId: run.run_id };
      },
    },
    heartbeat: { begun: () => undefined, ended: () => undefined },
    endings: { tell: () => undefined },
    suspects,
    waitersElsewhere: { left: () => false, endedUnnoticed: () => undefined },
    faults: { reached: () => undefined },
    onGraphEnded: () => undefined,
    onReleased: () => undefined,
  } as unknown as RunsInHandParts);
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
