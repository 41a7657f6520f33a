import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { watchNpmParent, type NpmParentOptions } from "../../../src/cli/dev/launch.ts";

/** When `threadloom dev` treats the end of its parent process as its own. */

const LONG_MS = 60_000;
const NPX = { npm_lifecycle_event: "npx" };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** The number of reported ends for a process whose parent ends. */
const reportedEnds = async (options: Partial<NpmParentOptions>): Promise<number> => {
  let parent = 100;
  const onEnd = vi.fn();
  watchNpmParent({ environment: NPX, parent: () => parent, leadsGroup: () => false, onEnd, ...options });
  await vi.advanceTimersByTimeAsync(LONG_MS);
  expect(onEnd).not.toHaveBeenCalled();
  parent = 1;
  await vi.advanceTimersByTimeAsync(LONG_MS);
  return onEnd.mock.calls.length;
};

test("the end of the shell of npm or npx is reported once", async () => {
  expect(await reportedEnds({})).toBe(1);
  expect(await reportedEnds({ environment: { npm_lifecycle_event: "dev" } })).toBe(1);
});

test("a server that npm has not started continues, and so does one that was detached from its shell", async () => {
  expect(await reportedEnds({ environment: {} })).toBe(0);
  expect(await reportedEnds({ leadsGroup: () => true })).toBe(0);
});
