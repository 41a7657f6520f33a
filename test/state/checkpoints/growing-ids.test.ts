import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { Annotation, Command, interrupt, MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import { uuid6, type BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { AttemptOptions } from "../../../src/state/checkpoints/storage.ts";
import { idAfter } from "../../../src/state/checkpoints/write/id-order.ts";
import { boundCopy, type RunnableGraph } from "../../../src/graphs/runnable-graph.ts";
import { aRunningRun, openStorage, type OpenStorage } from "./open-storage.ts";

let opened: OpenStorage;
beforeAll(async () => {
  opened = await openStorage();
});
afterAll(() => opened.close());
afterEach(() => void vi.useRealTimers());

const HOUR_MS = 3_600_000;
const STEP_MS = 5_000;

/** Moves the clock of this process by this much, and stops it there. */
const step = (ms: number): void => {
  const now = Date.now();
  vi.useFakeTimers({ toFake: ["Date"] });
  vi.setSystemTime(now + ms);
};

const checkpointOf = (config: unknown): string =>
  String((config as { configurable?: Record<string, unknown> }).configurable?.["checkpoint_id"]);

describe("an id", () => {
  test("stays unchanged if it follows the newest", () => {
    const newest = uuid6(-1);
    const id = uuid6(-1);
    expect(idAfter(newest, id)).toBe(id);
    expect(idAfter("", id)).toBe(id);
    expect(idAfter(id, id)).toBe(id);
  });

  test.each([
    "3f19bd21-3c2e-6abc-8000-0123456789ab",
    "3f19bd21-ffff-6fff-bfff-ffffffffffff",
    "f3cfb9c0-7b0a-443c-80f1-fbe50da20c83",
    "f19bd213-c2e0-7abc-8000-0123456789ab",
  ])("follows %s and is a UUIDv6", (newest) => {
    const id = uuid6(1);
    const later = idAfter(newest, id);
    expect(later > newest).toBe(true);
    expect(later).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-6[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(later.slice(19)).toBe(id.slice(19));
  });
});

const State = Annotation.Root({
  steps: Annotation<string[]>({ reducer: (left, right) => [...left, ...right], default: () => [] }),
});
type Node = () => Promise<typeof State.Update> | typeof State.Update;

/** A graph of these nodes in a row. */
const row = (nodes: Record<string, Node | object>) => {
  let graph = new StateGraph(State) as unknown as StateGraph<
    typeof State.spec,
    typeof State.State,
    object,
    string
  >;
  let before = "__start__";
  for (const [name, node] of Object.entries(nodes)) {
    graph = graph.addNode(name, node as never) as typeof graph;
    graph.addEdge(before as "__start__", name);
    before = name;
  }
  graph.addEdge(before as "__start__", "__end__");
  return graph.compile() as unknown as RunnableGraph;
};

const done =
  (name: string, first: () => void = () => undefined): Node =>
  () => {
    first();
    return { steps: [name] };
  };

/** A run of a thread by a process that knows no earlier run. */
const run = async (
  threadId: string,
  graph: RunnableGraph,
  input: unknown,
  { checkpointId, durability = "async" }: { checkpointId?: string } & Pick<AttemptOptions, "durability"> = {},
): Promise<unknown> => {
  const attempt = await aRunningRun(opened.database, threadId);
  const saver = opened.anotherProcess().saverForAttempt({ ...attempt, durability });
  const result = await boundCopy(graph, { checkpointer: saver }).invoke(input, {
    configurable: { thread_id: threadId, ...(checkpointId && { checkpoint_id: checkpointId }) },
    durability,
  });
  await saver.flush();
  return result;
};

const stateOf = async (threadId: string, graph: RunnableGraph, checkpointer?: BaseCheckpointSaver) =>
  await boundCopy(graph, { checkpointer: checkpointer ?? opened.anotherProcess().saver }).getState({
    configurable: { thread_id: threadId },
  });

const stepsOf = async (threadId: string, graph: RunnableGraph): Promise<string[]> =>
  ((await stateOf(threadId, graph)).values as typeof State.State).steps;

/** The checkpoints of a thread, newest first, each with its parent. */
const checkpointsOf = async (threadId: string) =>
  await opened.database.query<{ ns: string; id: string; parent: string | null }>(
    `select checkpoint_ns as ns, checkpoint_id as id, parent_id as parent from threadloom.checkpoints
     where thread_id = $1 order by checkpoint_id desc`,
    [threadId],
  );

describe("a clock that goes back during a run", () => {
  test.each(["sync", "async", "exit"] as const)(
    "loses nothing of the run, and the next one continues from its end (durability %s)",
    async (durability) => {
      const graph = row({
        a: done("a"),
        b: done("b", () => step(-STEP_MS)),
        c: done("c"),
        d: done("d", () => step(-STEP_MS)),
      });
      const { threadId } = await aRunningRun(opened.database);
      const result = await run(threadId, graph, { steps: ["one"] }, { durability });
      expect(result).toEqual({ steps: ["one", "a", "b", "c", "d"] });
      expect(await stepsOf(threadId, graph)).toEqual(["one", "a", "b", "c", "d"]);
      expect((await stateOf(threadId, graph)).next).toEqual([]);
      await run(threadId, graph, { steps: ["two"] }, { durability });
      expect(await stepsOf(threadId, graph)).toEqual([
        ...["one", "a", "b", "c", "d"],
        ...["two", "a", "b", "c", "d"],
      ]);
      for (const { id, parent } of await checkpointsOf(threadId)) if (parent) expect(id > parent).toBe(true);
    },
  );

  test.each(["async", "exit"] as const)(
    "leaves a question that can be answered (durability %s)",
    async (durability) => {
      const graph = row({
        a: done("a", () => step(-STEP_MS)),
        ask: () => ({ steps: [String(interrupt("who?"))] }),
        b: done("b"),
      });
      const { threadId } = await aRunningRun(opened.database);
      await run(threadId, graph, { steps: ["one"] }, { durability });
      const asked = await stateOf(threadId, graph);
      expect(asked.next).toEqual(["ask"]);
      expect(asked.tasks[0]?.interrupts[0]?.value).toBe("who?");
      step(-STEP_MS);
      await run(threadId, graph, new Command({ resume: "me" }), { durability });
      expect(await stepsOf(threadId, graph)).toEqual(["one", "a", "me", "b"]);
    },
  );

  test("loses nothing of a subgraph, nor of its question", async () => {
    const ask: Node = () => ({ steps: [String(interrupt("who?"))] });
    const inner = row({ x: done("x", () => step(-STEP_MS)), y: done("y"), ask });
    const graph = row({ a: done("a", () => step(-STEP_MS)), inner, b: done("b") });
    const { threadId } = await aRunningRun(opened.database);
    await run(threadId, graph, { steps: ["one"] });
    step(-STEP_MS);
    await run(threadId, graph, new Command({ resume: "me" }));
    const before = ["one", "a"];
    expect(await stepsOf(threadId, graph)).toEqual([...before, ...before, "x", "y", "me", "b"]);
    const rows = await checkpointsOf(threadId);
    expect(new Set(rows.map(({ ns }) => ns)).size).toBe(2);
    for (const { id, parent } of rows) if (parent) expect(id > parent).toBe(true);
  });

  test("does not hide an update of the state, which returns its stored id", async () => {
    const graph = row({ a: done("a") });
    const { threadId } = await aRunningRun(opened.database);
    await run(threadId, graph, { steps: ["one"] });
    await opened.database.query("update threadloom.runs set status = 'success' where thread_id = $1", [
      threadId,
    ]);
    step(-STEP_MS);
    const saver = opened.anotherProcess().saverForIdleThread();
    const written = await boundCopy(graph, { checkpointer: saver }).bulkUpdateState(
      { configurable: { thread_id: threadId } },
      ["two", "three"].map((text) => ({ updates: [{ values: { steps: [text] }, asNode: "a" }] })),
    );
    await saver.flush();
    expect(await stepsOf(threadId, graph)).toEqual(["one", "a", "two", "three"]);
    expect(checkpointOf((await stateOf(threadId, graph)).config)).toBe(checkpointOf(written));
  });
});

describe("after a server whose clock is an hour ahead", () => {
  const graph = row({ a: done("a") });

  /** A turn of that server; returns the checkpoint before its last one. */
  const turnThere = async (threadId: string): Promise<string> => {
    step(HOUR_MS);
    await run(threadId, graph, { steps: ["one"] });
    vi.useRealTimers();
    return checkpointOf((await stateOf(threadId, graph)).parentConfig);
  };

  test("a turn is the newest at once, and so are the later ones", async () => {
    const { threadId } = await aRunningRun(opened.database);
    await turnThere(threadId);
    await run(threadId, graph, { steps: ["two"] });
    await run(threadId, graph, { steps: ["three"] });
    expect(await stepsOf(threadId, graph)).toEqual(["one", "a", "two", "a", "three", "a"]);
  });

  test("a turn that continues from an older checkpoint is the newest, too", async () => {
    const { threadId } = await aRunningRun(opened.database);
    const before = await turnThere(threadId);
    await run(threadId, graph, { steps: ["other"] }, { checkpointId: before });
    expect(await stepsOf(threadId, graph)).toEqual(["one", "other", "a"]);
  });
});

test("the checkpoint ids in streams are the stored ones", async () => {
  const graph = row({ a: done("a", () => step(-STEP_MS)), b: done("b") });
  const { threadId, ...attempt } = await aRunningRun(opened.database);
  const saver = opened.anotherProcess().saverForAttempt({ threadId, ...attempt });
  const streamedIds: string[] = [];
  const stream = await boundCopy(graph, { checkpointer: saver }).stream(
    { steps: [] },
    { configurable: { thread_id: threadId }, streamMode: ["checkpoints"] },
  );
  for await (const chunk of stream) {
    const [, payload] = chunk as [string, { config: unknown }];
    streamedIds.push(checkpointOf(payload.config));
  }
  await saver.flush();
  expect(streamedIds).toEqual((await checkpointsOf(threadId)).map(({ id }) => id).reverse());
});

test("where LangGraph accepts no other id, a turn that would count as older is refused and not lost", async () => {
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("answer", () => {
      step(-STEP_MS);
      return { messages: [new AIMessage("answer")] };
    })
    .addEdge("__start__", "answer")
    .addEdge("answer", "__end__");
  const attempt = await aRunningRun(opened.database);
  const saver = opened.anotherProcess().saverForAttempt(attempt);
  const unordered = new Proxy(saver, {
    has: (target, key) => key !== "idAfterAll" && Reflect.has(target, key),
  });
  const invoked = graph
    .compile({ checkpointer: unordered })
    .invoke({ messages: [new HumanMessage("hi")] }, { configurable: { thread_id: attempt.threadId } });
  await expect(invoked).rejects.toThrow("set the clocks of all servers by NTP");
});
