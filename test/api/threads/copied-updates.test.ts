import { Command, MemorySaver, type CompiledStateGraph } from "@langchain/langgraph";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openThreadsRoom, type State, type ThreadsRoom } from "./threads-room.ts";

/** Updates of a state that raise no version of a channel, and copies of them, compared with LangGraph's saver in memory. */

let room: ThreadsRoom;
beforeAll(async () => {
  room = await openThreadsRoom();
});
afterAll(() => room.close());

type Graph = CompiledStateGraph<object, object>;
interface Update {
  values: unknown;
  as_node?: string;
}
/** Newest first; LangGraph generates the ids of messages. */
type Shown = { values: unknown; next: readonly string[]; source: unknown }[];

const human = (content: string) => ({ messages: [{ role: "user", content }] });

const essence = (
  states: { values: unknown; next: readonly string[]; metadata?: object | undefined }[],
): Shown =>
  states.map(({ values, next, metadata }) => ({
    values: JSON.parse(
      JSON.stringify(values, (key, value: unknown) =>
        key === "messages" && Array.isArray(value)
          ? value.map(({ content }: { content: unknown }) => content)
          : value,
      ),
    ) as unknown,
    next: [...next].sort(),
    source: (metadata as { source: unknown }).source,
  }));

const libraryThread = async () => {
  const graph = (await room.graphs.resolve(
    "fan-out",
    {},
    { checkpointer: new MemorySaver() as never },
  )) as unknown as Graph;
  const config = { configurable: { thread_id: "1" } };
  return {
    run: async (input: unknown) => {
      await graph.invoke(input as never, config);
    },
    update: async ({ values, as_node }: Update) => {
      await graph.updateState(
        { configurable: { thread_id: "1", checkpoint_ns: "" } },
        values as never,
        as_node as never,
      );
    },
    history: async () => {
      const states = [];
      for await (const state of graph.getStateHistory(config)) states.push(state);
      return essence([(await graph.getState(config)) as never, ...states]);
    },
  };
};

const serverThread = async () => {
  const { thread_id: id } = await room.aThread();
  return {
    run: (input: unknown) => room.run("fan-out", id, input),
    update: async (update: Update) => {
      expect((await room.request("POST", `/threads/${id}/state`, update)).status).toBe(200);
    },
    history: async () => {
      const head = (await room.request<State>("GET", `/threads/${id}/state`)).body;
      const states = (await room.request<State[]>("POST", `/threads/${id}/history`, { limit: 1000 })).body;
      return essence([head, ...states]);
    },
  };
};

const answer = new Command({ resume: "yes" });
const STARTS: Record<string, unknown[]> = {
  "a question": [human("one")],
  "a finished turn": [human("one"), answer],
  "a question after a finished turn": [human("one"), answer, human("two")],
};
const UPDATES: Record<string, Update> = {
  "no values, as no node": { values: null },
  "no values, as the node that asked": { values: null, as_node: "ask" },
  "empty values, as the node that asked": { values: {}, as_node: "ask" },
  "values, as the node that asked": { values: { done: ["by hand"] }, as_node: "ask" },
  "no values, as the node beside it": { values: null, as_node: "quick" },
  "no values, as the last node": { values: null, as_node: "late" },
  "no values, as the end": { values: null, as_node: "__end__" },
};
const COPY: Update = { values: null, as_node: "__copy__" };
const cases = Object.entries(STARTS).flatMap(([start, inputs]) =>
  Object.entries(UPDATES).map(([name, update]) => ({ start, inputs, name, update })),
);

describe("after an update, a copy of it and another run, every checkpoint is as LangGraph's saver in memory has it", () => {
  it.each(cases)("$start, updated with $name", async ({ inputs, update }) => {
    const threads = [await libraryThread(), await serverThread()] as const;
    const expectSame = async () => {
      const [library, server] = threads;
      expect(await server.history()).toEqual(await library.history());
    };
    for (const input of inputs) for (const thread of threads) await thread.run(input);
    await expectSame();
    for (const one of [update, COPY, COPY]) {
      for (const thread of threads) await thread.update(one);
      await expectSame();
    }
    for (const input of [null, human("three")]) {
      for (const thread of threads) await thread.run(input).catch(() => undefined);
      await expectSame();
    }
  });
});
