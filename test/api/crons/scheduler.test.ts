import { context, createContextKey, ROOT_CONTEXT } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { createScheduler } from "../../../src/api/crons/firing/scheduler.ts";
import { listeningLogger } from "../../helpers/parts.ts";

/** When the scheduler polls for crons, with a clock that the tests advance. */

beforeEach(() => {
  vi.useFakeTimers({ now: new Date("2026-01-01T00:00:30Z") });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A scheduler with a cron that is due at `due`. */
const aScheduler = (due: () => Date | null) => {
  const looks: string[] = [];
  const fired: string[] = [];
  const clock = (): string => new Date().toISOString().slice(14, 23);
  let failures = 0;
  const scheduler = createScheduler(
    {
      async poll() {
        looks.push(clock());
        if (failures-- > 0) throw new Error("the database is away");
        return { now: new Date(), due: due() };
      },
      async fire() {
        fired.push(clock());
        return true;
      },
    },
    listeningLogger().logger,
  );
  return { scheduler, looks, fired, fail: (times: number) => (failures = times) };
};

test("without crons the scheduler polls each full minute, and at once when a cron is created here", async () => {
  const { scheduler, looks } = aScheduler(() => null);
  scheduler.open();
  await vi.advanceTimersByTimeAsync(40_000);
  expect(looks).toEqual(["00:30.000", "01:00.000"]);
  scheduler.wake();
  await vi.advanceTimersByTimeAsync(0);
  expect(looks).toEqual(["00:30.000", "01:00.000", "01:10.000"]);
  await scheduler.close();
});

test("a cron is fired when it is due; before that the scheduler polls each second", async () => {
  let due = new Date("2026-01-01T00:00:32.300Z");
  const { scheduler, looks, fired } = aScheduler(() => {
    const now = due;
    if (due <= new Date() && fired.length > 0) due = new Date("2026-01-02T00:00:00Z");
    return now;
  });
  scheduler.open();
  await vi.advanceTimersByTimeAsync(2_350);
  expect(looks.slice(0, 4)).toEqual(["00:30.000", "00:31.000", "00:32.000", "00:32.300"]);
  expect(fired[0]).toBe("00:32.300");
  await scheduler.close();
});

test("after a database failure the scheduler soon polls again", async () => {
  const { scheduler, looks, fail } = aScheduler(() => null);
  fail(3);
  scheduler.open();
  await vi.advanceTimersByTimeAsync(3_000);
  expect(looks).toHaveLength(4);
  await scheduler.close();
});

test("the scheduler does not poll before it is opened, or after it is closed", async () => {
  const { scheduler, looks } = aScheduler(() => null);
  scheduler.wake();
  await vi.advanceTimersByTimeAsync(120_000);
  expect(looks).toEqual([]);
  scheduler.open();
  await scheduler.close();
  scheduler.wake();
  await vi.advanceTimersByTimeAsync(120_000);
  expect(looks).toEqual(["02:30.000"]);
});

test("runs of crons do not belong to the trace of the request that created the newest cron", async () => {
  const manager = new AsyncLocalStorageContextManager().enable();
  context.setGlobalContextManager(manager);
  onTestFinished(() => context.disable());
  const request = createContextKey("request");
  const requests: unknown[] = [];
  const { scheduler } = aScheduler(() => {
    requests.push(context.active().getValue(request));
    return null;
  });
  scheduler.open();
  await vi.advanceTimersByTimeAsync(0);
  context.with(ROOT_CONTEXT.setValue(request, "the request"), () => scheduler.wake());
  await vi.advanceTimersByTimeAsync(40_000);
  expect(requests).toEqual([undefined, undefined, undefined]);
  await scheduler.close();
});
