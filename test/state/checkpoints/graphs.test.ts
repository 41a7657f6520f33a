import {
  AIMessage,
  HumanMessage,
  RemoveMessage,
  ToolMessage,
  type BaseMessage,
} from "@langchain/core/messages";
import {
  Annotation,
  Command,
  interrupt,
  MessagesAnnotation,
  REMOVE_ALL_MESSAGES,
  Send,
  StateGraph,
  type StateSnapshot,
} from "@langchain/langgraph";
import { MemorySaver, type BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AttemptSaver } from "../../../src/state/checkpoints/storage.ts";
import { aRunningRun, openStorage, type OpenStorage } from "./open-storage.ts";

let opened: OpenStorage;
beforeAll(async () => {
  opened = await openStorage();
});
afterAll(() => opened.close());

/** The behaviour of a node; several are in a row, each with all kinds of state beside the messages. */
type NodeKind =
  | "answer"
  | "answer twice"
  | "use a tool"
  | "forget one"
  | "forget all"
  | "rewrite"
  | "note"
  | "ask"
  | "fan out"
  | "delegate";

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  notes: Annotation<Array<{ text: string; tags: string[] }>>({
    reducer: (left, right) => [...left, ...right],
    default: () => [],
  }),
  files: Annotation<Record<string, string>>({
    reducer: (left, right) => ({ ...left, ...right }),
    default: () => ({}),
  }),
  last: Annotation<unknown>,
});
type StateValues = typeof State.State;

/** Filler that makes some values too long for a row. */
const filler = (seed: number, length: number): string => `${seed} `.repeat(length);

const subgraph = () =>
  new StateGraph(MessagesAnnotation)
    .addNode("think", ({ messages }) => ({
      messages: [new AIMessage({ id: `t${messages.length}`, content: "hm" })],
    }))
    .addNode("say", ({ messages }) => ({
      messages: [new AIMessage({ id: `s${messages.length}`, content: "so" })],
    }))
    .addEdge("__start__", "think")
    .addEdge("think", "say")
    .addEdge("say", "__end__")
    .compile();

const nodes: Record<Exclude<NodeKind, "delegate">, (state: StateValues, name: string) => unknown> = {
  answer: ({ messages }, name) => ({
    messages: [new AIMessage({ id: `${name}-${messages.length}`, content: filler(messages.length, 30) })],
    last: name,
  }),
  "answer twice": ({ messages }, name) => ({
    messages: [
      new AIMessage({ id: `${name}-${messages.length}`, content: "one" }),
      new HumanMessage({ id: `${name}-${messages.length}b`, content: [{ type: "text", text: "two" }] }),
    ],
  }),
  "use a tool": ({ messages }, name) => ({
    messages: [
      new AIMessage({
        id: `${name}-${messages.length}`,
        content: "",
        tool_calls: [{ id: "c", name: "tool", args: { count: messages.length } }],
      }),
      new ToolMessage({
        id: `${name}-${messages.length}t`,
        content: "result",
        tool_call_id: "c",
        artifact: { a: [1] },
      }),
    ],
    files: { [`file${messages.length % 3}`]: filler(messages.length, 1_500) },
  }),
  "forget one": ({ messages }) => {
    const forgotten = messages[Math.floor(messages.length / 2)];
    return { messages: forgotten?.id === undefined ? [] : [new RemoveMessage({ id: forgotten.id })] };
  },
  "forget all": ({ messages }, name) => ({
    messages: [
      new RemoveMessage({ id: REMOVE_ALL_MESSAGES }),
      new AIMessage({ id: `${name}-summary-${messages.length}`, content: "summary" }),
    ],
  }),
  rewrite: ({ messages }) => ({
    messages: messages
      .slice(0, 2)
      .map((message: BaseMessage) => new AIMessage({ id: message.id, content: "rewritten" })),
  }),
  note: ({ messages, notes }) => ({
    notes: [{ text: filler(notes.length, 20), tags: [String(messages.length)] }],
    last: { deep: { notes: notes.length, when: undefined } },
  }),
  ask: ({ messages }, name) => {
    const answer: unknown = interrupt({ question: `${name}?`, count: messages.length });
    return {
      messages: [
        new HumanMessage({ id: `${name}-answer-${messages.length}`, content: JSON.stringify(answer) }),
      ],
    };
  },
  "fan out": ({ messages }, name) =>
    new Command({
      update: { last: name },
      goto: [1, 2, 3].map((number) => new Send("worker", { number, count: messages.length, name })),
    }),
};

const build = (kinds: readonly NodeKind[], checkpointer: BaseCheckpointSaver) => {
  const builder = new StateGraph(State) as unknown as StateGraph<
    typeof State,
    StateValues,
    Partial<StateValues>,
    string
  >;
  const names = kinds.map((kind, index) => `${index} ${kind}`);
  for (const [index, kind] of kinds.entries()) {
    const name = names[index] as string;
    if (kind === "delegate") builder.addNode(name, subgraph() as never, { ends: ["worker"] });
    else
      builder.addNode(name, ((state: StateValues) => nodes[kind](state, name)) as never, {
        ends: ["worker"],
      });
    builder.addEdge((index === 0 ? "__start__" : names[index - 1]) as "__start__", name);
  }
  builder.addNode("worker", ((input: { number: number; count: number; name: string }) => ({
    messages: [
      new AIMessage({
        id: `${input.name}-${input.count}-${input.number}`,
        content: `worker ${input.number}`,
      }),
    ],
    notes: [{ text: `from worker ${input.number}`, tags: [] }],
  })) as never);
  return builder.compile({ checkpointer });
};

type Step =
  | { kind: "turn"; durability: "sync" | "async" | "exit" }
  | { kind: "resume" }
  | { kind: "update" }
  | { kind: "fork"; from: number }
  | { kind: "replay"; from: number };

const scenario = fc.record({
  kinds: fc.array(
    fc.constantFrom<NodeKind>(
      "answer",
      "answer twice",
      "use a tool",
      "forget one",
      "forget all",
      "rewrite",
      "note",
      "ask",
      "fan out",
      "delegate",
    ),
    { minLength: 1, maxLength: 4 },
  ),
  steps: fc.array(
    fc.oneof(
      {
        weight: 4,
        arbitrary: fc
          .constantFrom("sync" as const, "async" as const, "exit" as const)
          .map((durability): Step => ({ kind: "turn", durability })),
      },
      { weight: 2, arbitrary: fc.constant<Step>({ kind: "resume" }) },
      fc.constant<Step>({ kind: "update" }),
      fc.nat(30).map((from): Step => ({ kind: "fork", from })),
      fc.nat(30).map((from): Step => ({ kind: "replay", from })),
    ),
    { minLength: 1, maxLength: 7 },
  ),
});

type Graph = ReturnType<typeof build>;

const perform = async (graph: Graph, threadId: string, step: Step, number: number): Promise<unknown> => {
  const config = { configurable: { thread_id: threadId } };
  const input = { messages: [new HumanMessage({ id: `h${number}`, content: `question ${number}` })] };
  const history = async (from: number): Promise<StateSnapshot | undefined> => {
    const all: StateSnapshot[] = [];
    for await (const state of graph.getStateHistory(config)) all.push(state);
    return all[from % Math.max(all.length, 1)];
  };
  try {
    switch (step.kind) {
      case "turn":
        return await graph.invoke(input, { ...config, durability: step.durability });
      case "resume":
        return await graph.invoke(new Command({ resume: `answer ${number}` }), config);
      case "update":
        return await graph
          .updateState(config, { notes: [{ text: `update ${number}`, tags: [] }] }, "worker")
          .then(() => "updated");
      case "fork": {
        const state = await history(step.from);
        return state && (await graph.updateState(state.config, input, "worker").then(() => "forked"));
      }
      case "replay": {
        const state = await history(step.from);
        return state && (await graph.invoke(null, state.config));
      }
    }
  } catch (error) {
    return String(error);
  }
};

/** The whole history, with random ids replaced by their order of appearance. */
const describeThread = async (graph: Graph, threadId: string): Promise<unknown> => {
  const numbers = new Map<string, number>();
  const numbered = (text: string): string =>
    text.replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}/g, (id) => {
      if (id === threadId) return "thread";
      if (!numbers.has(id)) numbers.set(id, numbers.size);
      return `#${numbers.get(id)}`;
    });
  const states: unknown[] = [];
  for await (const state of graph.getStateHistory({ configurable: { thread_id: threadId } })) {
    const { values, next, config, metadata, parentConfig, tasks } = state;
    const { run_id: _, ...known } = (metadata ?? {}) as { run_id?: string };
    const ofTasks = tasks.map(({ name, error, interrupts, path, result }) => ({
      name,
      error,
      interrupts,
      path,
      result,
    }));
    states.push({ values, next, config, metadata: known, parentConfig, tasks: ofTasks });
  }
  return JSON.parse(numbered(JSON.stringify(states))) as unknown;
};

/** The parent and a subgraph with its own memory hold the same messages. */
const keeper = (checkpointer: BaseCheckpointSaver) => {
  const State = Annotation.Root({ ...MessagesAnnotation.spec, note: Annotation<string> });
  const child = new StateGraph(State)
    .addNode("i", () => ({}))
    .addNode("j", () => ({}))
    .addEdge("__start__", "i")
    .addEdge("i", "j")
    .compile({ checkpointer: true });
  return new StateGraph(State)
    .addNode("a", () => ({}))
    .addNode("child", child)
    .addNode("c", () => ({}))
    .addEdge("__start__", "a")
    .addEdge("a", "child")
    .addEdge("child", "c")
    .compile({ checkpointer });
};

describe("graphs on state stored as differences", () => {
  it("read a subgraph's longer list while the elements of a fork are not stored yet", async () => {
    const { threadId, ...run } = await aRunningRun(opened.database);
    const config = { configurable: { thread_id: threadId } };
    const memory = keeper(new MemorySaver());
    const idsOf = ({ values }: StateSnapshot): unknown =>
      (values as { messages: BaseMessage[] }).messages.map(({ id }) => id);
    let messages = 0;
    /** As the server does: a saver for each run. */
    const both = async (act: (graph: typeof memory) => Promise<unknown>): Promise<void> => {
      const attempt = opened.storage.saverForAttempt({ threadId, ...run, durability: "async" });
      await act(memory);
      await act(keeper(attempt));
      await attempt.flush();
    };
    const turn = (count: number): Promise<void> => {
      const input = Array.from({ length: count }, () => `m${messages++}`);
      return both((graph) =>
        graph.invoke({ messages: input.map((id) => new HumanMessage({ id, content: id })) }, config),
      );
    };
    for (const count of [5, 2, 3, 4, 3]) await turn(count);
    // Every place: each leaves the parent another number of elements to begin with.
    for (let place = 0; place < 25; place += 3) {
      await both(async (graph) => {
        const history: StateSnapshot[] = [];
        for await (const state of graph.getStateHistory(config)) history.push(state);
        await graph.updateState(history[place]!.config, { note: "by hand" }, "child");
      });
      await turn(3);
      const expected = idsOf(await memory.getState(config));
      expect(idsOf(await keeper(opened.anotherProcess().saver).getState(config))).toEqual(expected);
    }
  });

  it("have the same states, histories and forks as on the in-memory saver", async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async ({ kinds, steps }) => {
        const { threadId, ...run } = await aRunningRun(opened.database);
        const memory = build(kinds, new MemorySaver());
        for (const [number, step] of steps.entries()) {
          const durability = step.kind === "turn" ? step.durability : "async";
          const attempt: AttemptSaver = opened.storage.saverForAttempt({ threadId, ...run, durability });
          const ours = build(kinds, attempt);
          const [theirResult, ourResult] = [
            await perform(memory, threadId, step, number),
            await perform(ours, threadId, step, number),
          ];
          await attempt.flush();
          const readable = (result: unknown): string =>
            JSON.stringify(result)?.replace(/[0-9a-f]{32}/g, "id") ?? "";
          expect(readable(ourResult)).toBe(readable(theirResult));
        }
        const expected = await describeThread(memory, threadId);
        expect(await describeThread(build(kinds, opened.storage.saver), threadId)).toEqual(expected);
        expect(await describeThread(build(kinds, opened.anotherProcess().saver), threadId)).toEqual(expected);
      }),
      {
        numRuns: 120,
        endOnFailure: true,
        examples: [
          // A fork from a checkpoint that was stored by the same statement as its successor.
          [
            {
              kinds: ["answer", "answer"],
              steps: [
                { kind: "turn", durability: "sync" },
                { kind: "turn", durability: "async" },
                { kind: "fork", from: 1 },
                { kind: "turn", durability: "sync" },
              ],
            },
          ],
        ],
      },
    );
  });
});
