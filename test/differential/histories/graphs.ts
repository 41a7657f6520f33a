import { AIMessage, RemoveMessage, type BaseMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import {
  Annotation,
  Command,
  DeltaValue,
  END,
  entrypoint,
  interrupt,
  messagesDeltaReducer,
  messagesStateReducer,
  Send,
  START,
  StateGraph,
  StateSchema,
  task,
} from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { z } from "zod";
import type { RunnableGraph } from "../../../src/graphs/runnable-graph.ts";
import { isFailing, perform, type Plan, type State } from "./actions.ts";
import { describeValue, ODD_VALUES } from "./odd-values.ts";

type Saver = BaseCheckpointSaver | undefined;

const replaced = <Value>() =>
  Annotation<Value | undefined>({ reducer: (_, next) => next, default: () => undefined });
const appended = () => Annotation<string[]>({ reducer: (old, next) => [...old, ...next], default: () => [] });

const SHARED = {
  plan: replaced<Plan>(),
  messages: Annotation<BaseMessage[]>({ reducer: messagesStateReducer, default: () => [] }),
  list: replaced<unknown[]>(),
  value: replaced<unknown>(),
};
/** Of each graph alone: a subgraph returns whole channels, and would change the parent's box in place. */
const OWN = {
  box: replaced<NonNullable<State["box"]>>(),
  log: appended(),
  sum: Annotation<number>({ reducer: (old, next) => old + next, default: () => 0 }),
  table: Annotation<Record<string, unknown>>({
    reducer: (old, next) => ({ ...old, ...next }),
    default: () => ({}),
  }),
};

const node =
  (name: string) =>
  (state: object, config: RunnableConfig): Record<string, unknown> =>
    perform(name, state as State, config);

/** If one of several subgraphs fails, LangGraph stops the others wherever they are. So these fail never. */
const steadyNode = (name: string) => (state: object) => perform(name, state as State, undefined);

const routeOf = ({ plan }: State): string => (typeof plan?.["route"] === "string" ? plan["route"] : "both");
const SENT = [0, 1, 2];

/** Parallel nodes, workers by Send, and a Command with a destination. */
export const buildShop = (checkpointer?: Saver): RunnableGraph => {
  const state = Annotation.Root({ ...SHARED, ...OWN });
  const route = (values: State): string | string[] | Send[] => {
    switch (routeOf(values)) {
      case "workers":
        return SENT.map(
          (number) => new Send("worker", { plan: values.plan, sum: number, value: values.value }),
        );
      case "one":
        return "b";
      case "end":
        return END;
      default:
        return ["b", "c"];
    }
  };
  return new StateGraph(state)
    .addNode(
      "a",
      (values: object, config: RunnableConfig) => {
        const update = node("a")(values, config);
        return (values as State).plan?.["goto"] === "e" ? new Command({ update, goto: "e" }) : update;
      },
      { ends: ["e"] },
    )
    .addNode("b", node("b"))
    .addNode("c", node("c"))
    .addNode("d", node("d"))
    .addNode("e", node("e"))
    .addNode("worker", node("worker"))
    .addEdge(START, "a")
    .addConditionalEdges("a", route as (values: object) => string, ["b", "c", "worker", END])
    .addEdge("b", "d")
    .addEdge("c", "d")
    .addEdge("worker", "d")
    .addEdge("d", END)
    .compile(checkpointer === undefined ? {} : { checkpointer }) as unknown as RunnableGraph;
};

const subgraph = (names: [string, string], checkpointer?: true, inner?: object) => {
  const state = Annotation.Root({ ...SHARED, ...OWN });
  const [first, last] = names;
  const builder = new StateGraph(state, { output: Annotation.Root(SHARED) })
    .addNode(first, node(first))
    .addNode("inner", (inner ?? node("inner")) as never)
    .addNode(last, node(last))
    .addEdge(START, first)
    .addEdge(first, "inner")
    .addEdge("inner", last)
    .addEdge(last, END);
  return builder.compile(checkpointer === undefined ? {} : { checkpointer });
};

/** A subgraph with its own memory, then a plain one that has another inside; several of these by Send. */
export const buildNest = (checkpointer?: Saver): RunnableGraph => {
  const state = Annotation.Root({ ...SHARED, ...OWN });
  const route = (values: State): string | Send[] => {
    switch (routeOf(values)) {
      case "workers":
        return SENT.map((number) => new Send("sent", { plan: values.plan, value: number }));
      case "one":
        return "plain";
      case "end":
        return END;
      default:
        return "keeper";
    }
  };
  return new StateGraph(state)
    .addNode("a", node("a"))
    .addNode("keeper", subgraph(["k1", "k2"], true) as never)
    .addNode("plain", subgraph(["p1", "p2"], undefined, subgraph(["i1", "i2"])) as never)
    .addNode(
      "sent",
      new StateGraph(state, { output: Annotation.Root({ messages: SHARED.messages }) })
        .addNode("s1", steadyNode("s1"))
        .addNode("s2", steadyNode("s2"))
        .addEdge(START, "s1")
        .addEdge("s1", "s2")
        .addEdge("s2", END)
        .compile() as never,
    )
    .addNode("d", node("d"))
    .addEdge(START, "a")
    .addConditionalEdges("a", route as (values: object) => string, ["keeper", "plain", "sent", END])
    .addEdge("keeper", "plain")
    .addEdge("plain", "d")
    .addEdge("sent", "d")
    .addEdge("d", END)
    .compile(checkpointer === undefined ? {} : { checkpointer }) as unknown as RunnableGraph;
};

const byId = (one: BaseMessage, other: BaseMessage): number => ((one.id ?? "") < (other.id ?? "") ? -1 : 1);

/** A message may be written twice in a step, by hand as plain JSON and by a node. */
const textOf = ({ id, content, ...message }: BaseMessage): string =>
  JSON.stringify([id, "role" in message ? "plain" : "made", content]);
const byText = (one: BaseMessage, other: BaseMessage): number => (textOf(one) < textOf(other) ? -1 : 1);

/**
 * LangGraph replays the writes of a step, and those of an update of the same checkpoint, in the order of random task ids. So the results of
 * these reducers depend on no order: they sort, and no message is removed.
 */
export const buildDelta = (checkpointer?: Saver): RunnableGraph => {
  const list = () =>
    new DeltaValue(
      z.array(z.string()).default(() => []),
      { inputSchema: z.string(), reducer: (old, writes) => [...old, ...writes].sort(), snapshotFrequency: 3 },
    );
  const state = new StateSchema({
    messages: new DeltaValue(
      z.custom<BaseMessage[]>().default(() => []),
      {
        inputSchema: z.custom<BaseMessage[]>(),
        reducer: (old, writes) => messagesDeltaReducer(old, writes.flat().sort(byText)).sort(byId),
      },
    ),
    items: list(),
    others: list(),
    plan: z.unknown(),
    value: z.unknown(),
    sum: z.number().default(0),
  });
  type Values = State & { items: string[]; others: string[] };
  const delta = (name: string, channel: "items" | "others") => (values: object, config: RunnableConfig) => {
    const written = perform(name, values as State, config) as State;
    const messages = written.messages?.filter((message) => !RemoveMessage.isInstance(message));
    const count = (values as Values)[channel].length;
    return {
      // Two values in one step are refused, and the server reads such a state in its own way (docs/decisions/012-refused-writes.md).
      ...("value" in written && name !== "c" ? { value: written.value } : {}),
      ...(written.sum === undefined || name === "c" ? {} : { sum: written.sum }),
      ...(messages === undefined
        ? {}
        : { messages: messages.map(({ id = "" }) => new AIMessage({ id, content: id })) }),
      ...(written.log === undefined ? {} : { [channel]: `${count}: ${written.log.join("; ")}` }),
    };
  };
  return new StateGraph(state)
    .addNode("a", delta("a", "items") as never)
    .addNode("b", delta("b", "items") as never)
    .addNode("c", delta("c", "others") as never)
    .addNode("d", delta("d", "items") as never)
    .addEdge(START, "a" as never)
    .addEdge("a" as never, "b" as never)
    .addEdge("a" as never, "c" as never)
    .addEdge(["b", "c"] as never, "d" as never)
    .addEdge("d" as never, END)
    .compile(checkpointer === undefined ? {} : { checkpointer }) as unknown as RunnableGraph;
};

interface FunctionInput {
  tasks?: number;
  asks?: number;
  fails?: boolean;
  odd?: string;
  saves?: boolean;
}

interface Saved {
  turns: number;
  when: Date;
  value: unknown;
}

const square = task("square", (number: number, odd: string | undefined): unknown => ({
  square: number * number,
  value: ODD_VALUES[odd ?? ""]?.(),
}));
const askInTask = task("ask", (number: number): string => {
  const answer: unknown = number === 1 ? interrupt({ task: number }) : "none";
  return `${number} was told ${JSON.stringify(answer)}`;
});

/** The functional API: tasks in parallel, questions in and beside tasks, and the value of the run before. */
export const buildFunctional = (checkpointer?: Saver): RunnableGraph =>
  entrypoint(
    { name: "functional", ...(checkpointer === undefined ? {} : { checkpointer }) },
    async (input: FunctionInput, config: RunnableConfig & { previous?: unknown }) => {
      const previous = config.previous as Saved | undefined;
      const squares = await Promise.all(
        Array.from({ length: input.tasks ?? 0 }, (_, number) => square(number, input.odd)),
      );
      const told = (input.asks ?? 0) > 1 ? await Promise.all([askInTask(0), askInTask(1)]) : [];
      const answer: unknown = (input.asks ?? 0) > 0 ? interrupt({ question: input.asks }) : null;
      if (input.fails === true && isFailing(config)) throw new Error("the function fails");
      const value = {
        answer,
        told,
        squares: squares.map((one) => describeValue(one)),
        previous: previous === undefined ? null : describeValue(previous),
      };
      if (input.saves !== true) return value;
      const save: Saved = {
        turns: (previous?.turns ?? 0) + 1,
        when: new Date(1),
        value: ODD_VALUES[input.odd ?? ""]?.(),
      };
      return entrypoint.final({ value, save });
    },
  ) as unknown as RunnableGraph;

export const BUILDERS = {
  shop: buildShop,
  nest: buildNest,
  delta: buildDelta,
  functional: buildFunctional,
} as const;
export type GraphName = keyof typeof BUILDERS;

/** The nodes that a plan, an update or an interruption can name. */
export const NODES: Readonly<Record<GraphName, readonly string[]>> = {
  shop: ["a", "b", "c", "d", "e", "worker"],
  nest: ["a", "keeper", "plain", "sent", "d"],
  delta: ["a", "b", "c", "d"],
  functional: ["functional"],
};
/** Nodes inside subgraphs. */
export const INNER_NODES: Readonly<Record<GraphName, readonly string[]>> = {
  shop: [],
  nest: ["k1", "inner", "k2", "p1", "i1", "i2", "p2", "s1", "s2"],
  delta: [],
  functional: [],
};

export const shop = buildShop();
export const nest = buildNest();
export const delta = buildDelta();
export const functional = buildFunctional();
