import { expect, test } from "vitest";
import type { StopReason, WatchedSink } from "../../../src/engine/executors/executor.ts";
import { createInlineExecutor, type InlineExecutorParts } from "../../../src/engine/executors/inline.ts";
import type { ClaimedRunRow } from "../../../src/platform/database/tables.ts";

/* A run whose log is away and does not come back. */

const RUN = {
  run_id: "r",
  thread_id: "t",
  graph_id: "g",
  attempt: 1,
  metadata: {},
  config: { configurable: {} },
  context: {},
  resumable: true,
  kwargs: { input: {}, stream_mode: ["custom"], durability: "async", stream_subgraphs: false },
  auth_user: null,
} as unknown as ClaimedRunRow;

const BROKEN = new Error("broken");

/** Streams more than the log takes. `fails`: then ends with an error, or else runs until it is stopped. */
const aGraph = (fails: boolean) => ({
  channels: {},
  stream: (_input: unknown, { signal }: { signal: AbortSignal }) =>
    Promise.resolve(
      (async function* () {
        for (const number of [1, 2, 3]) yield ["custom", number];
        if (fails) throw BROKEN;
        await new Promise((_, reject) =>
          signal.addEventListener("abort", () => reject(signal.reason as Error)),
        );
      })(),
    ),
});

/** `onPause`: called when the run waits for the log. */
const execute = (fails: boolean, onPause: () => void) => {
  const parts = {
    graphs: { resolve: () => Promise.resolve(aGraph(fails)), classesOf: () => undefined },
    checkpoints: {
      saverForAttempt: () => ({
        failed: new AbortController().signal,
        flush: () => Promise.resolve(),
        endsWithWrites: false,
      }),
    },
    recursionLimitMax: 100,
    eventCharactersAtMost: 1_000,
  } as unknown as InlineExecutorParts;
  const log: WatchedSink = {
    emit: (_, data) => void data(),
    needsPause: true,
    pause: () => new Promise(onPause),
    hasLog: true,
    logged: () => undefined,
    wanted: true,
    onWanted: () => undefined,
  };
  return createInlineExecutor(parts).execute(RUN, log, {
    isAlone: false,
    publishesProtocol: false,
    records: { keepsSpans: false, onRecords: () => undefined },
    onGraphEnded: () => undefined,
  });
};

test.each<[string, StopReason, boolean]>([
  ["was cancelled", { kind: "cancel", action: "interrupt" }, false],
  ["took too long", { kind: "timeout" }, false],
  ["has to go to another server", { kind: "shutdown" }, false],
  ["was cancelled after its graph had failed", { kind: "cancel", action: "interrupt" }, true],
])("a run that %s ends although its log is away", async (_, reason, fails) => {
  let onPause = (): void => undefined;
  const waits = new Promise<void>((resolve) => (onPause = resolve));
  const execution = execute(fails, () => onPause());
  await waits;
  execution.stop(reason);
  expect(await execution.result).toEqual({ kind: "stopped", reason });
});
