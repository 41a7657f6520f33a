import { expect, test } from "vitest";
import { EventPublisher } from "../../../src/engine/events/event-publisher.ts";
import { createEventIntake } from "../../../src/engine/executors/event-intake.ts";
import type { AttemptEvents } from "../../../src/engine/executors/executor.ts";
import type { RunnableGraph } from "../../../src/graphs/runnable-graph.ts";
import { createTimeSlicer } from "../../../src/platform/lib/time-slicer.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A log that takes one event in each pause, when the test ends the pause. */
const anIntake = (flush = (): Promise<void> => Promise.resolve()) => {
  const sent: string[] = [];
  const pauses: (() => void)[] = [];
  const sink: AttemptEvents = {
    emit: (event, data) => void sent.push(`${event} ${data()}`),
    needsPause: true,
    pause: () => new Promise((resolve) => pauses.push(resolve)),
    hasLog: true,
    logged: () => undefined,
  };
  const publisher = new EventPublisher(
    { stream_mode: ["custom", "updates"], stream_subgraphs: false },
    false,
    (...event) => sink.emit(...event),
  );
  const intake = createEventIntake({ publisher, sink, slicer: createTimeSlicer(1), flush });
  const goOn = async (): Promise<void> => {
    pauses.splice(0).forEach((resolve) => resolve());
    await turn();
  };
  return { intake, sent, goOn };
};

const aGraph = (chunks: unknown[], read: unknown[], error?: Error): RunnableGraph =>
  ({
    stream: () =>
      Promise.resolve(
        (async function* () {
          for (const chunk of chunks) {
            read.push(chunk);
            yield await Promise.resolve(chunk);
          }
          if (error !== undefined) throw error;
        })(),
      ),
  }) as unknown as RunnableGraph;

const CHUNKS = [1, 2, 3, 4].map((number) => ["custom", number]);
const SENT = ["custom 1", "custom 2", "custom 3", "custom 4"];

const isSettled = async (promise: Promise<unknown> | undefined): Promise<boolean> => {
  let settled = promise === undefined;
  void promise?.then(() => (settled = true));
  await turn();
  return settled;
};

test("a graph's stream is read to its end while the log is behind, and the next step waits until nothing is behind", async () => {
  const { intake, sent, goOn } = anIntake();
  const read: unknown[] = [];
  const execution = intake.execute(aGraph(CHUNKS, read), {}, {});
  await turn();
  expect(read).toEqual(CHUNKS);
  expect(sent).toEqual(SENT.slice(0, 1));
  const step = intake.beforeNextStep();
  const write = intake.beforeWrite();
  for (const count of [2, 3, 4]) {
    expect(await isSettled(Promise.race([step, write, execution]))).toBe(false);
    await goOn();
    expect(sent).toEqual(SENT.slice(0, count));
  }
  await goOn();
  await Promise.all([step, write, execution]);
});

test("what was read before a failure is sent before the failure is known", async () => {
  const { intake, sent, goOn } = anIntake();
  const execution = intake.execute(aGraph(CHUNKS, [], new Error("broken")), {}, {});
  await expect(execution).rejects.toThrow("broken");
  const settled = intake.settled();
  for (let count = 1; count <= CHUNKS.length; count += 1) await goOn();
  await settled;
  expect(sent).toEqual(SENT);
});

test("a question and what follows wait for its checkpoint, which does not wait for them", async () => {
  let store = (): void => undefined;
  const stored = new Promise<void>((resolve) => (store = resolve));
  const { intake, sent, goOn } = anIntake(() => stored);
  const asking = ["updates", { __interrupt__: [] }];
  const execution = intake.execute(aGraph([asking, ...CHUNKS], []), {}, {});
  await turn();
  await goOn();
  expect(sent).toEqual([]);
  await intake.beforeWrite();
  store();
  for (let count = 0; count <= CHUNKS.length + 1; count += 1) await goOn();
  await execution;
  expect(sent).toEqual(['updates {"__interrupt__":[]}', ...SENT]);
});

test("an event that is refused ends the execution at once, with its error", async () => {
  const { intake, goOn } = anIntake();
  const refused = {
    get value() {
      throw new RangeError("too large");
    },
  };
  const never = new Promise<never>(() => undefined);
  const execution = intake.execute(aGraph([...CHUNKS, ["custom", refused], never], []), {}, {});
  execution.catch(() => undefined);
  for (let count = 0; count <= CHUNKS.length; count += 1) await goOn();
  await expect(execution).rejects.toThrow("too large");
  await expect(intake.settled()).rejects.toThrow("too large");
});

test("once the end has dropped events, no checkpoint is stored without them, and none waits for them", async () => {
  const { intake, sent } = anIntake();
  void intake.execute(aGraph(CHUNKS, []), {}, {});
  await turn();
  const write = intake.beforeWrite();
  intake.end(undefined);
  await expect(write).rejects.toThrow("dropped");
  await expect(intake.beforeWrite()).rejects.toThrow("dropped");
  expect(sent).toEqual(SENT.slice(0, 1));
});
