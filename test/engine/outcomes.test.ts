import { expect, test } from "vitest";
import type { CheckpointStorage } from "../../src/state/checkpoints/types.ts";
import type { ExecutedRunRow } from "../../src/platform/database/tables.ts";
import { createOutcomes } from "../../src/engine/attempt/outcomes.ts";
import type { GraphResult } from "../../src/engine/executors/executor.ts";
import type { Graphs } from "../../src/graphs/graphs.ts";
import { StateStorageError } from "../../src/platform/domain/errors.ts";
import { listeningLogger } from "../helpers/parts.ts";

/** What is stored of how a graph ended. */

const RUN = {
  run_id: "r",
  thread_id: "t",
  graph_id: "g",
  config: {},
  context: {},
  kwargs: {},
} as unknown as ExecutedRunRow;
const LOSS = new Error("the connection is gone");
const BROKEN = new Error("a factory out of order");

const outcomesBy = (resolve: () => Promise<unknown>, readWithinMs?: number) => {
  const { logger, lines } = listeningLogger();
  const outcomes = createOutcomes({
    database: { isLoss: (error) => error === LOSS },
    graphs: { resolve } as unknown as Graphs,
    checkpoints: {} as CheckpointStorage,
    timeoutSecondsOf: () => 5,
    ...(readWithinMs === undefined ? {} : { readWithinMs }),
    logger,
  });
  return { outcomes, lines };
};

/** Of a thread in this state; an error is thrown when it is read. */
const outcomeOf = async (result: GraphResult, state: unknown = { next: [], tasks: [] }) => {
  const getState = () => (state instanceof Error ? Promise.reject(state) : Promise.resolve(state));
  const { outcomes, lines } = outcomesBy(() => Promise.resolve({ getState }));
  return { outcome: await outcomes.of(RUN, result), lines };
};
const completed = (interrupted: boolean): GraphResult => ({
  kind: "completed",
  values: () => "{}",
  interrupts: interrupted ? () => "[]" : undefined,
});
const cancelled: GraphResult = { kind: "stopped", reason: { kind: "cancel", action: "interrupt" } };
const failed = (error: unknown): GraphResult => ({ kind: "failed", error });

/** One task waits for an answer, one has none to wait for, one does not say. */
const WAITING = {
  next: ["ask"],
  tasks: [
    { id: "asks", interrupts: [{ id: "i", value: "why?" }] },
    { id: "works", interrupts: [] },
    { id: "x" },
  ],
};

test("a graph that came to its end leaves its thread idle, and its state is not read for that", async () => {
  const { outcome } = await outcomeOf(completed(false), BROKEN);
  expect(outcome).toEqual({ status: "success", error: null, threadStatus: "idle", interrupts: "{}" });
});

test("one that asked leaves its thread interrupted, with the questions that wait, by their task", async () => {
  const { outcome } = await outcomeOf(completed(true), { ...WAITING, next: [] });
  expect(outcome).toMatchObject({ status: "success", threadStatus: "interrupted" });
  expect(JSON.parse(outcome.interrupts)).toEqual({ asks: [{ id: "i", value: "why?" }] });
});

test.each([
  ["has come to its end", { next: [], tasks: [] }, "idle", {}],
  ["has steps to go", { next: ["a"], tasks: [] }, "interrupted", {}],
  ["asks", WAITING, "interrupted", { asks: [{ id: "i", value: "why?" }] }],
])(
  "one that was cancelled where its thread %s leaves it like that",
  async (_what, state, threadStatus, interrupts) => {
    const { outcome } = await outcomeOf(cancelled, state);
    expect(outcome).toMatchObject({ status: "interrupted", error: null, threadStatus });
    expect(JSON.parse(outcome.interrupts)).toEqual(interrupts);
  },
);

test.each([
  ["asked", completed(true), "interrupted"],
  ["was cancelled", cancelled, "idle"],
])(
  "one that %s ends though its own code keeps the state from being read",
  async (_what, result, threadStatus) => {
    const { outcome, lines } = await outcomeOf(result, BROKEN);
    expect(outcome).toMatchObject({ error: null, threadStatus, interrupts: "{}" });
    expect(lines.join()).toContain("the pending interrupts of a thread could not be read");
  },
);

test.each([
  ["factory", () => new Promise(() => undefined)],
  ["state", () => Promise.resolve({ getState: () => new Promise(() => undefined) })],
])("one whose %s hangs still has an outcome, and no values", async (_what, resolve) => {
  const { outcomes, lines } = outcomesBy(resolve, 10);
  expect(await outcomes.of(RUN, cancelled)).toMatchObject({ status: "interrupted", interrupts: "{}" });
  expect(await outcomes.valuesOf(RUN)).toBeUndefined();
  expect(lines.join()).toContain("no answer within 10 ms");
});

test("while our own database is away it has no outcome yet", async () => {
  await expect(outcomeOf(cancelled, LOSS)).rejects.toBe(LOSS);
});

test("one that took too long says how long it had", async () => {
  const { outcome } = await outcomeOf({ kind: "stopped", reason: { kind: "timeout" } }, BROKEN);
  expect(outcome).toEqual({
    status: "timeout",
    error: { error: "RunTimeoutError", message: "The run did not end within 5 seconds." },
    threadStatus: "error",
    interrupts: "{}",
  });
});

test.each([
  [
    "its own error as it is",
    Object.assign(new TypeError("no such thing"), { code: "E_MINE" }),
    "TypeError",
    "no such thing",
  ],
  [
    "an error of a routine of its own",
    Object.assign(new Error("mine"), { routine: "mine" }),
    "Error",
    "mine",
  ],
  [
    "what PostgreSQL says not at all",
    Object.assign(new Error('relation "secrets" does not exist'), {
      code: "42P01",
      routine: "parserOpenTable",
    }),
    "DatabaseError",
    "A database refused what the run wanted; the server's log says why.",
  ],
  [
    "what is wrong with our storage not at all",
    new StateStorageError("secret", { cause: BROKEN }),
    "StateStorageError",
    "The state of the thread could not be read or stored; the server's log says why.",
  ],
])("a failed graph shows %s", async (_what, error, name, message) => {
  const { outcome } = await outcomeOf(failed(error));
  expect(outcome).toEqual({
    status: "error",
    error: { error: name, message },
    threadStatus: "error",
    interrupts: "{}",
  });
});
