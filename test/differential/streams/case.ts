/** What a drawn case may be: a graph, what its runs are asked for, and the runs of one thread. */
import fc from "fast-check";
import type { Deed, Step } from "./graph.ts";

export const MODES = [
  "values",
  "updates",
  "messages-tuple",
  "messages",
  "custom",
  "tasks",
  "checkpoints",
  "debug",
  "tools",
  "events",
] as const;
export type Mode = (typeof MODES)[number];

export type Turn =
  | { gives: "input"; text: string }
  /** Continues where the thread stopped. */
  | { gives: "nothing" }
  /** Answers what waits; without a question it is an input. */
  | { gives: "answer"; answer: string; byId: boolean }
  | { gives: "update"; text: string };

export interface StreamCase {
  steps: Step[];
  modes: Mode[];
  subgraphs: boolean;
  resumable: boolean;
  durability: "sync" | "async" | "exit";
  /** The thread also has a reader of event streaming, for whom the graph streams more. */
  watched: boolean;
  /** Every step, before or after it. */
  stops: "never" | "before" | "after";
  turns: Turn[];
}

const fails = fc.constantFrom(false, false, false, true);
const think = fc.record({
  does: fc.constant("think" as const),
  tokens: fc.integer({ min: 1, max: 12 }),
  named: fc.boolean(),
  quiet: fc.constantFrom(false, false, false, true),
  fails,
});
const write = fc.record({
  does: fc.constant("write" as const),
  events: fc.integer({ min: 1, max: 6 }),
  characters: fc.constantFrom(1, 10, 500),
  atOnce: fc.boolean(),
  fails,
});
/** More than the graph may be ahead of the log and the readers. */
const writeMuch = fc.record({
  does: fc.constant("write" as const),
  events: fc.integer({ min: 12, max: 20 }),
  characters: fc.constant(100_000),
  atOnce: fc.boolean(),
  fails: fc.boolean(),
});
const simpleDeed = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ does: "say" as const }) },
  { weight: 3, arbitrary: fc.constant({ does: "log" as const }) },
  { weight: 4, arbitrary: think },
  { weight: 4, arbitrary: write },
  { weight: 2, arbitrary: writeMuch },
  {
    weight: 2,
    arbitrary: fc.record({ does: fc.constant("ask" as const), times: fc.integer({ min: 1, max: 2 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      does: fc.constant("use" as const),
      pieces: fc.integer({ min: 0, max: 3 }),
      fails,
    }),
  },
  { weight: 1, arbitrary: fc.constant({ does: "tell" as const }) },
  { weight: 1, arbitrary: fc.constant({ does: "fail" as const }) },
);

const { steps } = fc.letrec<{ steps: Step[]; step: Step; deed: Deed }>((tie) => ({
  steps: fc.array(tie("step"), { minLength: 1, maxLength: 4, depthIdentifier: "steps" }),
  deed: fc.oneof(
    { depthSize: "small", depthIdentifier: "steps", maxDepth: 2 },
    { weight: 8, arbitrary: simpleDeed },
    { weight: 1, arbitrary: fc.record({ does: fc.constant("call" as const), steps: tie("steps") }) },
  ),
  step: fc.oneof(
    { depthSize: "small", depthIdentifier: "steps", maxDepth: 2 },
    { weight: 8, arbitrary: tie("deed") },
    { weight: 1, arbitrary: fc.constant({ does: "jump" as const }) },
    {
      weight: 1,
      arbitrary: fc.record({
        does: fc.constant("beside" as const),
        deeds: fc.array(tie("deed"), { minLength: 2, maxLength: 3 }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        does: fc.constant("send" as const),
        times: fc.integer({ min: 1, max: 3 }),
        deed: tie("deed"),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ does: fc.constant("inside" as const), steps: tie("steps") }),
    },
  ),
}));

const text = fc.constantFrom("a", "b", "ü");
const laterTurn: fc.Arbitrary<Turn> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ gives: fc.constant("answer" as const), answer: text, byId: fc.boolean() }),
  },
  { weight: 2, arbitrary: fc.record({ gives: fc.constant("input" as const), text }) },
  { weight: 1, arbitrary: fc.constant({ gives: "nothing" as const }) },
  { weight: 1, arbitrary: fc.record({ gives: fc.constant("update" as const), text }) },
);

export const streamCase: fc.Arbitrary<StreamCase> = fc.record({
  steps,
  modes: fc.uniqueArray(fc.constantFrom(...MODES), { minLength: 1, maxLength: 4 }),
  subgraphs: fc.boolean(),
  resumable: fc.boolean(),
  durability: fc.constantFrom("sync" as const, "async" as const, "exit" as const),
  watched: fc.constantFrom(false, false, true),
  stops: fc.oneof(
    { weight: 6, arbitrary: fc.constant("never" as const) },
    { weight: 1, arbitrary: fc.constantFrom("before" as const, "after" as const) },
  ),
  turns: fc
    .tuple(fc.record({ gives: fc.constant("input" as const), text }), fc.array(laterTurn, { maxLength: 2 }))
    .map(([first, later]) => [first, ...later]),
});
