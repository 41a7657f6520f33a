import { pino } from "pino";
import { expect, onTestFinished, test, vi } from "vitest";
import type { AttemptRecords } from "../../../src/engine/queue/attempts.ts";
import { createAttemptRecords } from "../../../src/engine/traces/attempt-records.ts";

const TOKENS = {
  input_tokens: 2,
  output_tokens: 1,
  cache_read_tokens: 0,
  cache_creation_tokens: 0,
  reasoning_tokens: 0,
};

test("while a part is being stored, later records are collected in one part", async () => {
  const stored: AttemptRecords[] = [];
  let release = (): void => undefined;
  const records = createAttemptRecords(
    {
      traces: "all",
      costOf: () => 1,
      store: async (_attempt, part) => {
        stored.push(part);
        if (part.part === 0) await new Promise<void>((resolve) => (release = resolve));
      },
      metrics: { modelCall: () => undefined, toolCall: () => undefined, tokensUsed: () => undefined },
      logger: pino({ level: "silent" }),
    },
    { threadId: "t", runId: "r", attempt: 1 },
  );
  const call = {
    spans: "",
    calls: [],
    slowestNode: undefined,
    usage: [{ model: "model", calls: 1, ...TOKENS }],
  };
  for (let index = 0; index < 1_000; index += 1) records.options.onRecords(call, false);
  await Promise.resolve();
  release();
  await records.leave();
  expect(stored.map(({ usage }) => usage.map(({ calls }) => calls))).toEqual([[1], [999]]);
  expect(records.total).toMatchObject({ calls: 1_000, input_tokens: 2_000 });
});

const storingBy = (store: (part: AttemptRecords) => Promise<void>) =>
  createAttemptRecords(
    {
      traces: "all",
      costOf: () => 1,
      store: (_attempt, part) => store(part),
      metrics: { modelCall: () => undefined, toolCall: () => undefined, tokensUsed: () => undefined },
      logger: pino({ level: "silent" }),
    },
    { threadId: "t", runId: "r", attempt: 1 },
  );
const CALL = {
  spans: "",
  calls: [],
  slowestNode: undefined,
  usage: [{ model: "model", calls: 1, ...TOKENS }],
};
const AWAY = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
const CANCELLED = Object.assign(new Error("canceling statement due to statement timeout"), { code: "57014" });
/** A minute passes from each look at the clock to the next. */
const passMinutes = (): void => {
  let now = performance.now();
  const clock = vi.spyOn(performance, "now").mockImplementation(() => (now += 60_000));
  onTestFinished(() => clock.mockRestore());
};

test("a part waits for a database that is away for minutes, as long as the attempt goes on", async () => {
  passMinutes();
  let tries = 0;
  const stored = new Promise<AttemptRecords>((resolve) => {
    const records = storingBy((part) => {
      tries += 1;
      if (tries <= 3) return Promise.reject(AWAY);
      resolve(part);
      return Promise.resolve();
    });
    records.options.onRecords(CALL, false);
  });
  expect((await stored).usage.map(({ calls }) => calls)).toEqual([1]);
});

test("after the attempt, a part is given up if the database stays away", async () => {
  let tries = 0;
  const records = storingBy(() => {
    tries += 1;
    return Promise.reject(AWAY);
  });
  records.options.onRecords(CALL, false);
  passMinutes();
  await records.leave();
  expect(tries).toBe(1);
});

test("a part that the database cancels each time is given up after a minute, and the next one is stored", async () => {
  passMinutes();
  const stored = new Promise<AttemptRecords>((resolve) => {
    const records = storingBy((part) => {
      if (part.part === 0) return Promise.reject(CANCELLED);
      resolve(part);
      return Promise.resolve();
    });
    records.options.onRecords(CALL, false);
    records.options.onRecords(CALL, false);
  });
  expect((await stored).part).toBe(1);
});
