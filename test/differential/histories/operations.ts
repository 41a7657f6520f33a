import type { Random } from "../../abuse/random.ts";
import type { Action, Edit, Plan } from "./actions.ts";
import { INNER_NODES, NODES, type GraphName } from "./graphs.ts";
import { itemsByCount, oddByName, ODD_JSON, ODD_VALUES } from "./odd-values.ts";

/** A checkpoint by its place in the history, modulo its length; 0 is the newest. */
type Place = number;

interface Common {
  /** Which of the two servers gets the request, and which answers the reads. */
  server: number;
  reader: number;
  /** The earlier checkpoint that is compared afterwards. */
  look: Place;
}

export interface RunOptions {
  durability?: "sync" | "async" | "exit";
  before?: "*" | string[];
  after?: "*" | string[];
  failing?: boolean;
  at?: Place;
}

export interface Values {
  values: unknown;
  as?: string;
}

export type Operation = Common &
  (
    | ({ do: "run"; input: unknown } & RunOptions)
    /** `ids` tells whether answers name their questions; `count` says how many get one. */
    | ({ do: "resume"; ids: boolean; count: number; answers: unknown[] } & RunOptions)
    | ({ do: "command"; update?: unknown; goto?: string[]; send?: boolean } & RunOptions)
    /** A run from the checkpoint of the nth subgraph that the head or an earlier checkpoint shows. */
    | ({ do: "run in subgraph"; subgraph: number; input: unknown } & RunOptions)
    | ({ do: "update"; at?: Place } & Values)
    | ({ do: "update subgraph"; subgraph: number; at?: Place } & Values)
    | { do: "copy" }
    | { do: "prune" }
  );

export interface History {
  graph: GraphName;
  /** With which the thread is created. */
  supersteps: Values[][];
  operations: Operation[];
}

const ODD = Object.keys(ODD_VALUES);
const ANSWERS: readonly unknown[] = ["yes", 7, { ok: true }, ["a"], true, false, 0, "", {}, []];
const LENGTHS = [3, 10, 70, 130, 200];

const anEdit = (random: Random, isLarge: boolean): Edit => {
  const at = random.below(200);
  const odd = random.chance(0.5) ? { odd: random.pick(ODD) } : {};
  switch (random.below(8)) {
    case 0:
      return { edit: "fill", count: isLarge ? random.pick(LENGTHS) : random.below(4) };
    case 1:
      return { edit: "keep last", count: 1 + random.below(isLarge ? 80 : 4) };
    case 2:
      return { edit: random.pick(["clear", "reverse"]) };
    default:
      return { edit: random.pick(["append", "insert", "remove", "replace", "change", "change"]), at, ...odd };
  }
};

const anAction = (random: Random, isLarge: boolean): Action => {
  const edits = (): Edit[] => Array.from({ length: 1 + random.below(2) }, () => anEdit(random, isLarge));
  switch (random.below(12)) {
    case 0:
    case 1:
      return { act: "messages", edits: edits() };
    case 2:
    case 3:
      return { act: "list", edits: edits() };
    case 4:
      return { act: "value", odd: random.pick(ODD) };
    case 5:
      return { act: "table", odd: random.pick(ODD) };
    case 6:
      return { act: "look" };
    case 7:
      return { act: "ask", count: 1 + random.below(2) };
    case 8:
      return { act: "fail" };
    default:
      return { act: random.pick(["box", "add", "log"]), number: random.below(5) };
  }
};

const aPlan = (random: Random, graph: GraphName, isLarge: boolean): Plan => {
  const plan: Plan = { route: random.pick(["both", "both", "workers", "one", "end"]) };
  if (graph === "shop" && random.chance(0.15)) plan["goto"] = "e";
  for (const node of [...NODES[graph], ...INNER_NODES[graph]]) {
    if (random.chance(0.5))
      plan[node] = Array.from({ length: 1 + random.below(2) }, () => anAction(random, isLarge));
  }
  return plan;
};

/** What a request or a hand writes: plain JSON. */
const someValues = (random: Random, graph: GraphName, isLarge: boolean): unknown => {
  const id = `h${random.below(12)}`;
  // In delta channels, the order of two contents of one message is not fixed.
  const content = graph === "delta" ? id : `said ${random.below(9)}`;
  const odd = (): unknown => oddByName(random.pick(ODD_JSON));
  const list = (): unknown =>
    itemsByCount(isLarge ? random.pick(LENGTHS) : random.below(4), random.pick(ODD_JSON));
  const fields: Record<string, unknown>[] = [
    { messages: [{ role: "user", content, id }] },
    { value: odd() },
    { sum: random.below(3) },
    ...(graph === "delta"
      ? [{ items: "by hand" }, { others: "by hand" }]
      : [{ log: ["by hand"] }, { list: list() }, { table: { [`key ${random.below(3)}`]: odd() } }]),
  ];
  return Object.assign({}, ...fields.filter(() => random.chance(0.35))) as unknown;
};

const anInput = (random: Random, graph: GraphName, isLarge: boolean): unknown =>
  graph === "functional"
    ? {
        tasks: random.below(3),
        asks: random.pick([0, 0, 1, 2]),
        fails: random.chance(0.3),
        saves: random.chance(0.7),
        odd: random.pick(ODD),
      }
    : {
        ...(someValues(random, graph, isLarge) as object),
        plan: aPlan(random, graph, isLarge),
      };

const someOptions = (random: Random, graph: GraphName, mayFork: boolean): RunOptions => ({
  ...(random.chance(0.6) ? { durability: random.pick(["sync", "async", "exit"] as const) } : {}),
  ...(random.chance(0.12) ? { before: random.pick(["*" as const, [random.pick(NODES[graph])]]) } : {}),
  ...(random.chance(0.12) ? { after: random.pick(["*" as const, [random.pick(NODES[graph])]]) } : {}),
  ...(random.chance(0.4) ? { failing: true } : {}),
  ...(mayFork && random.chance(0.25) ? { at: random.below(40) } : {}),
});

const anUpdate = (random: Random, graph: GraphName, nodes: readonly string[], isLarge: boolean): Values => {
  const values = random.chance(0.15) ? null : someValues(random, graph, isLarge);
  switch (random.below(10)) {
    case 0:
      return { values: null, as: "__copy__" };
    case 1:
      return { values: [[values, random.pick(nodes)]], as: "__copy__" };
    case 2:
      return { values: null, as: "__end__" };
    case 3:
      return { values, as: "__start__" };
    case 4:
      return { values, as: "__input__" };
    case 5:
      return { values };
    default:
      return { values, as: random.pick(nodes) };
  }
};

const anOperation = (random: Random, graph: GraphName, isLarge: boolean): Operation => {
  const common = { server: random.below(2), reader: random.below(2), look: random.below(60) };
  const options = (mayFork = true): RunOptions => someOptions(random, graph, mayFork);
  const inner = INNER_NODES[graph];
  switch (random.below(20)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      return { do: "run", input: anInput(random, graph, isLarge), ...options(random.chance(0.4)), ...common };
    case 5:
    case 6:
      return { do: "run", input: null, ...options(), ...common };
    case 7:
    case 8:
    case 9:
    case 10: {
      const answers = Array.from({ length: 3 }, () => random.pick(ANSWERS));
      const count = random.pick([1, 2, 9, 9]);
      return {
        do: "resume",
        ids: random.chance(0.7),
        count,
        answers,
        ...options(random.chance(0.3)),
        ...common,
      };
    }
    case 11: {
      // Two executions of a function in one step are refused, which the server reads in its own way (docs/decisions/012-refused-writes.md).
      const mayGo = graph !== "functional" && random.chance(0.6);
      const node = random.pick(NODES[graph]);
      // Two executions of a subgraph with its own memory overtake each other in it.
      const goto = mayGo ? { goto: [node], send: node !== "keeper" && random.chance(0.3) } : {};
      const update = random.chance(0.7) ? { update: someValues(random, graph, isLarge) } : {};
      return { do: "command", ...update, ...goto, ...options(random.chance(0.3)), ...common };
    }
    case 12:
      return inner.length === 0
        ? { do: "copy", ...common }
        : {
            do: "run in subgraph",
            subgraph: random.below(4),
            input: null,
            ...options(random.chance(0.5)),
            ...common,
          };
    case 13:
    case 14:
    case 15:
    case 16:
    case 17: {
      const at = random.chance(0.4) ? { at: random.below(40) } : {};
      return inner.length > 0 && random.chance(0.5)
        ? {
            do: "update subgraph",
            subgraph: random.below(4),
            ...at,
            ...anUpdate(random, graph, inner, isLarge),
            ...common,
          }
        : { do: "update", ...at, ...anUpdate(random, graph, NODES[graph], isLarge), ...common };
    }
    case 18:
      return { do: "copy", ...common };
    default:
      return random.chance(0.4)
        ? { do: "prune", ...common }
        : { do: "run", input: anInput(random, graph, isLarge), ...options(false), ...common };
  }
};

/** Turns with new messages for a subgraph with its own memory, a fork by an update, and more turns. */
const aConversation = (random: Random): Operation[] => {
  let count = 0;
  const common = () => ({ server: random.below(2), reader: random.below(2), look: random.below(60) });
  const turns = (atMost: number): Operation[] =>
    Array.from({ length: 1 + random.below(atMost) }, () => {
      const messages = Array.from({ length: 2 + random.below(4) }, () => {
        count += 1;
        return { role: "user", content: `turn ${count}`, id: `t${count}` };
      });
      return { do: "run", input: { messages, plan: { route: "both" } }, ...common() };
    });
  const at = random.below(60);
  const fork: Operation = {
    do: "update",
    at,
    values: { value: "by hand" },
    as: random.pick(NODES.nest),
    ...common(),
  };
  return [...turns(14), fork, ...turns(3)];
};

const GRAPHS: readonly GraphName[] = [
  "shop",
  "shop",
  "shop",
  "nest",
  "nest",
  "nest",
  "delta",
  "delta",
  "functional",
];

export const aHistory = (random: Random): History => {
  const graph = random.pick(GRAPHS);
  const isLarge = random.chance(0.3);
  const supersteps =
    graph !== "functional" && random.chance(0.15)
      ? Array.from({ length: 1 + random.below(3) }, () =>
          Array.from({ length: 1 + random.below(2) }, () => ({
            values: someValues(random, graph, isLarge),
            as: random.pick(NODES[graph]),
          })),
        )
      : [];
  if (supersteps.length > 0)
    supersteps.unshift([{ values: anInput(random, graph, isLarge), as: "__input__" }]);
  if (graph === "nest" && random.chance(0.15))
    return { graph, supersteps: [], operations: aConversation(random) };
  return {
    graph,
    supersteps,
    operations: Array.from({ length: 5 + random.below(21) }, () => anOperation(random, graph, isLarge)),
  };
};
