import { expect, test } from "vitest";
import type { ClaimedRunRow } from "../../../src/platform/database/tables.ts";
import type { WatchedSink } from "../../../src/engine/executors/executor.ts";
import { createEventPipe } from "../../../src/engine/executors/process/event-pipe.ts";
import { RemoteExecution } from "../../../src/engine/executors/process/remote-execution.ts";
import { WINDOW_CHARACTERS, type EventPair } from "../../../src/engine/executors/process/messages.ts";
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
  const pipe = createEventPipe(
    (batches) => {
      for (const { events } of batches) execution.emit(events as EventPair[]);
    },
    () => undefined,
  );
  const there = pipe.open(1, { wanted: true, logged: false });
  execution.placeAt({
    send: (message) => void (message.kind === "taken" && there.taken(message.characters)),
  });

  let emitted = 0;
  const graph = (async () => {
    while (emitted < EVENTS) {
      there.emit("custom", () => `${emitted} ${TEXT}`);
      emitted += 1;
      if (there.needsPause) await there.pause();
    }
    pipe.flush();
  })();

  const atOnce = Math.ceil(WINDOW_CHARACTERS / TEXT.length);
  await eventually("it waits", () => there.needsPause);
  // Whole turns of the event loop, in which the graph could continue.
  for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
  expect(emitted).toBeLessThanOrEqual(atOnce);

  let isOver = false;
  void graph.then(() => (isOver = true));
  while (!isOver) {
    const before = taken.length;
    goOn();
    await new Promise(setImmediate);
    expect(emitted - before).toBeLessThanOrEqual(2 * atOnce);
  }
  expect(taken.map((text) => Number.parseInt(text, 10))).toEqual(Array.from({ length: EVENTS }, (_, i) => i));
});
