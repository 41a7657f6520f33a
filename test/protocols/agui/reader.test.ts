import { expect, test } from "vitest";
import type { RunEvent } from "../../../src/engine/events/log.ts";
import { createTimeSlicer } from "../../../src/platform/lib/time-slicer.ts";
import { createAgUiReader } from "../../../src/protocols/agui/reader.ts";
import { createTranslation } from "../../../src/protocols/agui/translation.ts";

const EVENTS = 3;

test("a reader translates an event of the run when the one before it was taken", async () => {
  const translated: number[] = [];
  const states = Array.from({ length: EVENTS }, (_, seq) => ({
    seq,
    event: "values",
    get data() {
      translated.push(seq);
      return JSON.stringify({ step: seq });
    },
  }));
  const batches = [states as unknown as RunEvent[]];
  const slicer = createTimeSlicer(1_000);
  const reader = createAgUiReader({
    translation: createTranslation(
      { threadId: "thread", runId: "run", messages: [] },
      { slicer, outputKeys: undefined },
    ),
    slicer,
    run: { next: async () => batches.shift() ?? "ended", close: () => undefined },
    outcome: async () => ({ kind: "completed", values: { step: EVENTS - 1 } }),
  });
  const namesOfNext = async () => {
    const events = await reader.next();
    return typeof events === "string"
      ? events
      : events.map(({ data }) => (JSON.parse(data) as { type: string }).type);
  };
  expect(await namesOfNext()).toEqual(["RUN_STARTED"]);
  expect(translated).toEqual([]);
  expect(await namesOfNext()).toEqual(["STATE_SNAPSHOT"]);
  expect(translated).toEqual([0]);
  expect(await namesOfNext()).toEqual(["STATE_DELTA"]);
  expect(translated).toEqual([0, 1]);
  expect(await namesOfNext()).toEqual(["STATE_DELTA"]);
  expect(await namesOfNext()).toEqual(["STATE_SNAPSHOT", "RUN_FINISHED"]);
  expect(await namesOfNext()).toBe("ended");
});

test("a reader sends small events together", async () => {
  const events = ["a", "b", "c"].map((name, seq) => ({
    seq,
    event: "custom",
    data: JSON.stringify({ name }),
  }));
  const batches = [events as unknown as RunEvent[]];
  const slicer = createTimeSlicer(1_000);
  const reader = createAgUiReader({
    translation: createTranslation(
      { threadId: "thread", runId: "run", messages: [] },
      { slicer, outputKeys: undefined },
    ),
    slicer,
    run: { next: async () => batches.shift() ?? "ended", close: () => undefined },
    outcome: async () => ({ kind: "completed", values: {} }),
  });
  expect(await reader.next()).toHaveLength(1);
  expect(await reader.next()).toHaveLength(events.length);
  expect(await reader.next()).toHaveLength(2);
});
