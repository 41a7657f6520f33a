import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createSuspects } from "../../src/engine/worker/suspects.ts";
import type { RunRow } from "../../src/platform/database/tables.ts";

/** How long a process that executes suspects begins no other run. The clock is moved by hand. */

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const run = (run_id: string, lost_attempts = 2) => ({ run_id, lost_attempts }) as RunRow;

const suspectsOf = () => {
  let joinable = 0;
  const suspects = createSuspects({
    isSuspect: ({ lost_attempts }) => lost_attempts >= 2,
    leaseSeconds: 10,
    atOnce: 0,
    onJoinable: () => (joinable += 1),
  });
  return { suspects, joinable: () => joinable };
};

test("a suspect is alone for half a lease, then others may begin beside it", () => {
  const { suspects, joinable } = suspectsOf();
  suspects.begun(run("innocent", 0));
  expect(suspects.isFull).toBe(false);
  suspects.begun(run("one"));
  vi.advanceTimersByTime(4_999);
  expect([suspects.isAlone, joinable()]).toEqual([true, 0]);
  vi.advanceTimersByTime(1);
  expect([suspects.isAlone, suspects.isFull, joinable()]).toEqual([false, true, 1]);
  suspects.released("one");
  expect([suspects.isFull, joinable()]).toEqual([false, 1]);
});

test("a second suspect, found after a lost answer, has its own time, and neither is forgotten", () => {
  const { suspects, joinable } = suspectsOf();
  suspects.begun(run("one"));
  vi.advanceTimersByTime(3_000);
  suspects.begun(run("two"));
  vi.advanceTimersByTime(3_000);
  expect([suspects.isAlone, joinable()]).toEqual([true, 0]);
  suspects.released("two");
  expect([suspects.isFull, suspects.isAlone, joinable()]).toEqual([true, true, 0]);
  suspects.released("one");
  expect([suspects.isFull, suspects.isAlone, joinable()]).toEqual([false, false, 1]);
});
