import { AsyncLocalStorage } from "node:async_hooks";
import { expect, test, vi } from "vitest";
import type { ClaimedRunRow } from "../../../src/platform/database/tables.ts";
import type { GraphExecutor, GraphResult, WatchedSink } from "../../../src/engine/executors/executor.ts";
import { RemoteExecution } from "../../../src/engine/executors/process/remote-execution.ts";
import { createHost } from "../../../src/engine/executors/process/host.ts";
import { NO_RECORDS } from "../no-records.ts";

const SINK: WatchedSink = {
  emit: () => undefined,
  needsPause: false,
  pause: () => Promise.resolve(),
  wanted: false,
  onWanted: () => undefined,
  hasLog: false,
  logged: () => undefined,
};

/** What the main process receives of a graph's end, through the messages of the pipe. */
const resultThere = async (result: GraphResult) => {
  const executor: GraphExecutor<GraphResult> = {
    suspectsAtOnce: 0,
    execute: () => ({
      result: Promise.resolve(result),
      stop: () => undefined,
      wantValues: () => undefined,
    }),
  };
  const there = new RemoteExecution(
    1,
    { run_id: "run", delete_thread: false } as ClaimedRunRow,
    SINK,
    { isSuspect: false, publishesProtocol: false, records: NO_RECORDS, onGraphEnded: () => undefined },
    vi.fn(),
  );
  const host = createHost({
    executor,
    send: (message) => {
      const sent = JSON.parse(JSON.stringify(message)) as typeof message;
      if (sent.kind === "result") there.arrived(sent.result);
    },
    isLoss: () => false,
    residentBytes: () => 0,
    current: new AsyncLocalStorage(),
    onClose: () => undefined,
  });
  there.wantValues();
  there.placeAt({ send: (message) => host.receive(message) });
  return await there.result;
};

test("a run whose values have no JSON form succeeds, as it does in the main process, and its waiting caller gets an error", async () => {
  const result = await resultThere({
    kind: "completed",
    values: () => {
      throw new TypeError("a getter throws");
    },
    interrupts: undefined,
  });
  if (result.kind !== "completed") return expect.fail(`it is ${result.kind}`);
  expect(() => result.values()).toThrow("a getter throws");
});

test("values and interrupts arrive unchanged", async () => {
  const result = await resultThere({ kind: "completed", values: () => `{"a":1}`, interrupts: () => "[]" });
  if (result.kind !== "completed") return expect.fail(`it is ${result.kind}`);
  expect([result.values(), result.interrupts?.()]).toEqual([`{"a":1}`, "[]"]);
});
