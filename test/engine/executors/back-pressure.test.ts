import { expect, test } from "vitest";
import type { ClaimedRunRow } from "../../../src/platform/database/tables.ts";
import type { AttemptEvents, GraphResult, WatchedSink } from "../../../src/engine/executors/executor.ts";
import { createHost } from "../../../src/engine/executors/process/host.ts";
import { RemoteExecution } from "../../../src/engine/executors/process/remote-execution.ts";
import { WINDOW_CHARACTERS } from "../../../src/engine/executors/process/messages.ts";
import { eventually } from "../../helpers/conditions.ts";
import { NO_RECORDS } from "../no-records.ts";

const EVENTS = 500;
const TEXT = "x".repeat(100_000);

/** A sink of the main process that accepts events one pause at a time, when the test lets it. */
const aSlowSink = () => {
  const taken: string[] = [];
  const pausing: (() => void)[] = [];
  const sink: WatchedSink = {
    wanted: true,
    onWanted: () => undefined,
    emit: (_, data) => void taken.push(data()),
    needsPause: true,
    pause: () => new Promise((resolve) => pausing.push(resolve)),
    hasLog: false,
    logged: () => undefined,
  };
  return { sink, taken, goOn: () => pausing.splice(0).forEach((resolve) => resolve()) };
};

test("a graph that emits 50 MB faster than they are read waits, and no event is lost", async () => {
  const { sink, taken, goOn } = aSlowSink();
  const execution = new RemoteExecution(
    1,
    { delete_thread: false } as ClaimedRunRow,
    sink,
    { isAlone: false, publishesProtocol: false, records: NO_RECORDS, onGraphEnded: () => undefined },
    () => undefined,
  );
  let emitted = 0;
  let there: AttemptEvents | undefined;
  const runGraph = async (events: AttemptEvents): Promise<GraphResult> => {
    there = events;
    while (emitted < EVENTS) {
      events.emit("custom", () => `${emitted} ${TEXT}`);
      emitted += 1;
      if (events.needsPause) await events.pause();
    }
    return { kind: "stopped", reason: { kind: "shutdown" } };
  };
  const host = createHost({
    executor: {
      execute: (_, events) => ({
        result: runGraph(events),
        stop: () => undefined,
        wantValues: () => undefined,
      }),
    },
    send(message) {
      if (message.kind === "events") for (const [, events] of message.batches) execution.emit(events);
      if (message.kind === "result") execution.arrived(message.result);
    },
    isLoss: () => false,
    residentBytes: () => 0,
    onClose: () => undefined,
  });
  execution.placeAt({ send: (message) => host.receive(message), kill: () => undefined });

  const atOnce = Math.ceil(WINDOW_CHARACTERS / TEXT.length);
  await eventually("it waits", () => there?.needsPause === true);
  // Whole turns of the event loop, in which the graph could continue.
  for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
  expect(emitted).toBeLessThanOrEqual(atOnce);

  let isOver = false;
  void execution.result.then(() => (isOver = true));
  while (!isOver) {
    const before = taken.length;
    goOn();
    await new Promise(setImmediate);
    expect(emitted - before).toBeLessThanOrEqual(2 * atOnce);
  }
  expect(taken.map((text) => Number.parseInt(text, 10))).toEqual(Array.from({ length: EVENTS }, (_, i) => i));
});
