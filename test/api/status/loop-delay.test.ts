import { afterEach, expect, test } from "vitest";
import { watchLoopDelay } from "../../../src/api/status/service.ts";
import { eventually } from "../../helpers/conditions.ts";

const BLOCKED_MS = 200;
const NOTICED_SECONDS = BLOCKED_MS / 2_000;

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** Watches a loop that was just blocked, until a read shows it. */
const watchBlocked = async (periodMs?: number) => {
  const delay = watchLoopDelay(periodMs);
  closers.push(() => delay.close());
  await eventually("the block is recorded", async () => {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BLOCKED_MS);
    await new Promise(setImmediate);
    return delay.read().max > NOTICED_SECONDS;
  });
  return delay;
};

test("each read of a period shows a block of the event loop", async () => {
  const delay = await watchBlocked();
  for (let reads = 0; reads < 3; reads += 1) expect(delay.read().max).toBeGreaterThan(NOTICED_SECONDS);
  expect(delay.read().p99).toBeLessThanOrEqual(delay.read().max);
});

test("the first read of the next period still shows the block, and later ones do not", async () => {
  const delay = await watchBlocked(0);
  expect(delay.read().max).toBeGreaterThan(NOTICED_SECONDS);
  await eventually("the block is over", () => delay.read().max < NOTICED_SECONDS);
});
