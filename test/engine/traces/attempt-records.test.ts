import { pino } from "pino";
import { expect, test } from "vitest";
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
