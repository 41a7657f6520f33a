import { expect, test } from "vitest";
import type { CheckpointStorage } from "../../src/state/checkpoints/types.ts";
import type { ExecutedRunRow } from "../../src/platform/database/tables.ts";
import { createOutcomes } from "../../src/engine/attempt/outcomes.ts";
import type { GraphResult } from "../../src/engine/executors/executor.ts";
import type { Graphs } from "../../src/graphs/graphs.ts";
import { StateStorageError } from "../../src/platform/domain/errors.ts";
import { listeningLogger } from "../helpers/parts.ts";

/** The stored outcome of a graph that ended. */

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
    checkpoints: { saverForRead: () => undefined } as unknown as CheckpointStorage,
    timeoutSecondsOf: () => 5,
    ...(readWithinMs === undefined ? {} : { readWithinMs }),
    logger,
  });
  return { outcomes, lines };
};

/** The thread is in this state; an error is thrown when the state is read. */
const outcomeOf = async (result: GraphResult, state: unknown = { next: [], tasks: [] }) => {
  const getState = () => (state instanceof Error ? Promise.reject(state) : Promise.resolve(state));
  const { outcomes, lines } = outcomesBy(() => Promise.resolve({ getState }));
  return { outcome: await outcomes.of(RUN, result), lines };
};
const completed = (interrupted: boolean): GraphResult => ({
  kind: "completed",
  values: () => "{}",
  interrupts: interrupted ? () => "[]" : undefined,
  outputKeys: undefined,
});
const cancelled: GraphResult = { kind: "stopped", reason: { kind: "cancel", action: "interrupt" } };
const failed = (error: unknown): GraphResult => ({ kind: "failed", error });

/** One task waits for an answer, one waits for nothing, and one does not say. */
const WAITING = {
  next: ["ask"],
  tasks: [
    { id: "asks", interrupts: [{ id: "i", value: "why?" }] },
    { id: "works", interrupts: [] },
    { id: "x" },
  ],
};

test("a graph that finished leaves its thread idle, and its state is not read", async () => {
  const { outcome } = await outcomeOf(completed(false), BROKEN);
  expect(outcome).toEqual({ status: "success", error: null, threadStatus: "idle", interrupts: "{}" });
});

test("a graph that had nothing to do at an earlier checkpoint leaves its thread waiting for an answer", async () => {
  const { outcomes } = outcomesBy(() => Promise.resolve({ getState: () => Promise.resolve(WAITING) }));
  const run = { ...RUN, kwargs: { checkpoint: { checkpoint_id: "earlier" } } };
  const outcome = await outcomes.of(run, completed(false));
  expect(outcome).toMatchObject({ status: "success", error: null, threadStatus: "interrupted" });
  expect(JSON.parse(outcome.interrupts)).toEqual({ asks: [{ id: "i", value: "why?" }] });
});

test("a graph with interrupts leaves its thread interrupted, with the pending interrupts by task", async () => {
  const { outcome } = await outcomeOf(completed(true), { ...WAITING, next: [] });
  expect(outcome).toMatchObject({ status: "success", threadStatus: "interrupted" });
  expect(JSON.parse(outcome.interrupts)).toEqual({ asks: [{ id: "i", value: "why?" }] });
});

test("of the questions in the state, only those that the run asked itself wait for an answer", async () => {
  const asks = (id: string) => ({ id, interrupts: [{ id, value: id }] });
  const state = { next: [], tasks: [asks("answered"), asks("open")] };
  const result: GraphResult = {
    ...{ kind: "completed", values: () => "{}" },
    interrupts: () => '[{"id":"open","value":"open"}]',
    outputKeys: undefined,
  };
  const { outcome } = await outcomeOf(result, state);
  expect(JSON.parse(outcome.interrupts)).toEqual({ open: [{ id: "open", value: "open" }] });
});

test("a graph that was cancelled while a second question of a task waits leaves its thread interrupted", async () => {
  const { outcome } = await outcomeOf(cancelled, { ...WAITING, next: [] });
  expect(outcome).toMatchObject({ threadStatus: "interrupted" });
});

test.each([
  ["has come to its end", { next: [], tasks: [] }, "idle", {}],
  ["has steps to go", { next: ["a"], tasks: [] }, "interrupted", {}],
  ["asks", WAITING, "interrupted", { asks: [{ id: "i", value: "why?" }] }],
])(
  "a graph that was cancelled when its thread %s leaves it like that",
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
  "a graph that %s ends although its own code prevents reading the state",
  async (_what, result, threadStatus) => {
    const { outcome, lines } = await outcomeOf(result, BROKEN);
    expect(outcome).toMatchObject({ error: null, threadStatus, interrupts: "{}" });
    expect(lines.join()).toContain("the pending interrupts of a thread could not be read");
  },
);

test.each([
  ["factory", () => new Promise(() => undefined)],
  ["state", () => Promise.resolve({ getState: () => new Promise(() => undefined) })],
])("a graph whose %s hangs has an outcome without values", async (_what, resolve) => {
  const { outcomes, lines } = outcomesBy(resolve, 10);
  expect(await outcomes.of(RUN, cancelled)).toMatchObject({ status: "interrupted", interrupts: "{}" });
  expect(await outcomes.valuesOf(RUN, false)).toBeUndefined();
  expect(lines.join()).toContain("no answer within 10 ms");
});

test.each([
  [true, "__end__", "{}"],
  [false, "__end__", '{"returned":1}'],
  [true, ["returned"], '{"returned":1}'],
])(
  "the values of a graph that asked (%s) leave out what a function returned before (%j)",
  async (asked, outputChannels, values) => {
    const graph = { getState: () => Promise.resolve({ values: { returned: 1 } }), outputChannels };
    const { outcomes } = outcomesBy(() => Promise.resolve(graph));
    expect(await outcomes.valuesOf(RUN, asked)).toBe(values);
  },
);

test("while the server's own database is away, a graph has no outcome yet", async () => {
  await expect(outcomeOf(cancelled, LOSS)).rejects.toBe(LOSS);
});

test("a graph that timed out reports its time limit", async () => {
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
    "its own error unchanged",
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
    "PostgreSQL's text not at all",
    Object.assign(new Error('relation "secrets" does not exist'), {
      code: "42P01",
      routine: "parserOpenTable",
    }),
    "DatabaseError",
    "A database refused the run's statement; the server's log says why.",
  ],
  [
    "the fault of the storage not at all",
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
