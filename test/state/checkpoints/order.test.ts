import { Annotation, Command, interrupt, StateGraph } from "@langchain/langgraph";
import { uuid6, type BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { AttemptOptions, StoredCheckpoint } from "../../../src/state/checkpoints/storage.ts";
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

/** The checkpoints of a thread, newest first. */
const checkpointsOf = async (threadId: string) =>
  await opened.database.query<{ ns: string; id: string }>(
    `select checkpoint_ns as ns, checkpoint_id as id from threadloom.checkpoints
     where thread_id = $1 order by seq desc`,
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

  test.each([
    ["", false, "async"],
    ["", false, "exit"],
    [" that was pruned", true, "async"],
    [" that was pruned", true, "exit"],
  ] as const)(
    "loses nothing of a subgraph, nor of its question, in a thread%s",
    async (_how, isPruned, durability) => {
      const ask: Node = () => ({ steps: [String(interrupt("who?"))] });
      const seen: string[][] = [];
      const y = ({ steps }: typeof State.State) => {
        seen.push(steps);
        return { steps: ["y"] };
      };
      const inner = row({ x: done("x", () => step(-STEP_MS)), y, ask });
      const graph = row({ a: done("a", () => step(-STEP_MS)), inner, b: done("b") });
      const { threadId } = await aRunningRun(opened.database);
      await run(threadId, graph, { steps: ["one"] }, { durability });
      step(-STEP_MS);
      if (isPruned) await opened.anotherProcess().keepLatest(threadId);
      const asked = await stateOf(threadId, graph);
      expect(asked.tasks[0]?.state).toBeDefined();
      await run(threadId, graph, new Command({ resume: "me" }), { durability });
      const before = ["one", "a"];
      expect(seen).toEqual([[...before, "x"]]);
      expect(await stepsOf(threadId, graph)).toEqual([...before, ...before, "x", "y", "me", "b"]);
      const rows = await checkpointsOf(threadId);
      expect(new Set(rows.map(({ ns }) => ns)).size).toBe(2);
      // What the subgraph stored in the step of a checkpoint is not before that checkpoint.
      const inside = rows.find(({ ns }) => ns !== "")?.ns;
      const listed = opened
        .anotherProcess()
        .saver.list(
          { configurable: { thread_id: threadId, checkpoint_ns: inside } },
          { before: asked.config },
        );
      expect((await listed.next()).done).toBe(true);
    },
  );

  test("leaves the history in the order of the steps, also from page to page", async () => {
    const graph = row({
      a: done("a", () => step(-STEP_MS)),
      b: done("b", () => step(-STEP_MS)),
      c: done("c"),
    });
    const { threadId } = await aRunningRun(opened.database);
    await run(threadId, graph, { steps: ["one"] });
    const storage = opened.anotherProcess();
    const pageOf = async (limit: number, beforeCheckpointId?: string): Promise<StoredCheckpoint[]> => {
      const found: StoredCheckpoint[] = [];
      const options = { limit, ...(beforeCheckpointId && { beforeCheckpointId }) };
      for await (const stored of storage.readHistory(threadId, "", options)) found.push(stored);
      return found;
    };
    const all = await pageOf(10);
    expect(all.map(({ metadata }) => metadata["step"])).toEqual([3, 2, 1, 0, -1]);
    const pages = [await pageOf(2), await pageOf(10, all[1]?.checkpointId)];
    expect(pages.flat().map(({ checkpointId }) => checkpointId)).toEqual(
      all.map(({ checkpointId }) => checkpointId),
    );
  });

  test.each(["list", "readHistory"] as const)(
    "does not end a page at a checkpoint that is deleted meanwhile (%s)",
    async (reads) => {
      const { threadId } = await aRunningRun(opened.database);
      const storage = opened.anotherProcess();
      const saver = storage.saverForImport();
      const config = { configurable: { thread_id: threadId, checkpoint_ns: "" } };
      const ids = Array.from({ length: 120 }, (_, index) => uuid6(index));
      const empty = { v: 4, ts: "", channel_values: {}, channel_versions: {}, versions_seen: {} };
      for (const id of ids)
        await saver.put(config, { ...empty, id }, { source: "loop", step: 0, parents: {} }, {});
      await saver.flush();
      const found: string[] = [];
      const read = async (id: string): Promise<void> => {
        found.push(id);
        await opened.database.query(
          "delete from threadloom.checkpoints where thread_id = $1 and checkpoint_id = $2",
          [threadId, id],
        );
      };
      if (reads === "list")
        for await (const { checkpoint } of storage.saver.list(config)) await read(checkpoint.id);
      else
        for await (const { checkpointId } of storage.readHistory(threadId, "", { limit: 1000 }))
          await read(checkpointId);
      expect(found).toEqual(ids.toReversed());
    },
  );

  test("finds the state that a subgraph had before a checkpoint of the graph above", async () => {
    const graph = row({ a: done("a", () => step(-STEP_MS)) });
    const { threadId } = await aRunningRun(opened.database);
    await run(threadId, graph, { steps: ["one"] });
    const storage = opened.anotherProcess();
    const earlier = await storage.readHead(threadId);
    const config = { configurable: { thread_id: threadId, checkpoint_ns: "inner:1" } };
    const saver = storage.saverForImport();
    const inner = { v: 4, id: uuid6(0), ts: "", channel_values: {}, channel_versions: {}, versions_seen: {} };
    await saver.put(config, inner, { source: "loop", step: 0, parents: {} }, {});
    await saver.flush();
    await run(threadId, graph, { steps: ["two"] });
    const later = await storage.readHead(threadId);
    const before = async (checkpoint_id: string | undefined): Promise<string[]> => {
      const options = { limit: 1, before: { configurable: { checkpoint_id } } };
      const found: string[] = [];
      for await (const { checkpoint } of storage.saver.list(config, options)) found.push(checkpoint.id);
      return found;
    };
    expect(await before(earlier?.checkpointId)).toEqual([]);
    expect(await before(later?.checkpointId)).toEqual([inner.id]);
    // With durability `exit`, LangGraph names a checkpoint that it never stores.
    expect(await before("00000000-0000-6000-8000-000000000000")).toEqual([]);
    expect(await before("ffffffff-ffff-6fff-bfff-ffffffffffff")).toEqual([inner.id]);
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
