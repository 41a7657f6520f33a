import { AIMessage } from "@langchain/core/messages";
import { MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { aRunningRun, openStorage, type OpenStorage } from "./open-storage.ts";

let opened: OpenStorage;
beforeAll(async () => {
  opened = await openStorage();
});
afterAll(() => opened.close());

/** Runs a graph on a thread of its own; returns the statements that wrote to the table shared by all threads. */
const statementsOnShapes = async (storage: OpenStorage["storage"]): Promise<string[]> => {
  const run = await aRunningRun(opened.database);
  const saver = storage.saverForAttempt(run);
  const query = vi.spyOn(opened.database, "query");
  try {
    const graph = new StateGraph(MessagesAnnotation)
      .addNode("answer", () => ({ messages: [new AIMessage("An answer.")] }))
      .addEdge("__start__", "answer")
      .addEdge("answer", "__end__")
      .compile({ checkpointer: saver });
    await graph.invoke({ messages: [] }, { configurable: { thread_id: run.threadId } });
    await saver.flush();
    return query.mock.calls
      .map(([text]) => text)
      .filter((text) => /into threadloom.checkpoint_shapes/.test(text));
  } finally {
    query.mockRestore();
  }
};

test("the shape of a graph's checkpoints is stored only by its first run in a process", async () => {
  expect(await statementsOnShapes(opened.storage)).not.toEqual([]);
  expect(await statementsOnShapes(opened.storage)).toEqual([]);
  const [{ count } = { count: 0 }] = await opened.database.query<{ count: number }>(
    `select count(*)::int as count from threadloom.checkpoints c
     where not exists (select from threadloom.checkpoint_shapes s where s.hash = c.shape)`,
  );
  expect(count).toBe(0);
});

test("another process stores a shape once more, without a change", async () => {
  await statementsOnShapes(opened.storage);
  const shapes = () => opened.database.query("select * from threadloom.checkpoint_shapes order by hash");
  const before = await shapes();
  expect(await statementsOnShapes(opened.anotherProcess())).not.toEqual([]);
  expect(await shapes()).toEqual(before);
});
