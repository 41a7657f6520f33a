import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import type { GraphRunOptions, RunnableGraph } from "../../src/graphs/runnable-graph.ts";
import { eventually } from "../helpers/conditions.ts";
import { failure, FIXTURES, loadConfig } from "./helpers.ts";

/** Properties of the fixture graphs that other tests and the benchmarks rely on. */
const thread: GraphRunOptions = { configurable: { thread_id: "t" } };

async function fixture(id: string): Promise<RunnableGraph> {
  const graphs = await loadConfig(`${FIXTURES}langgraph.json`, { checkpointer: new MemorySaver() });
  return graphs.resolve(id);
}

async function collect(graph: RunnableGraph, input: unknown, options: GraphRunOptions): Promise<unknown[]> {
  const chunks: unknown[] = [];
  for await (const chunk of await graph.stream(input, { ...thread, ...options })) chunks.push(chunk);
  return chunks;
}

describe("the fixture graphs", () => {
  it("two-step appends a message in each of two nodes", async () => {
    const updates = await collect(await fixture("two-step"), { messages: "hi" }, { streamMode: "updates" });
    expect(updates).toMatchObject([
      { first: { messages: [{ content: "first" }] } },
      { second: { messages: [{ content: "second" }] } },
    ]);
  });

  it("ten-steps takes ten steps in order", async () => {
    const graph = await fixture("ten-steps");
    const result = await graph.invoke({}, thread);
    expect(result).toMatchObject({ steps: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] });
  });

  it("sleep takes its time from input or context, reports it, and ends at once when aborted", async () => {
    const graph = await fixture("sleep");
    const custom: GraphRunOptions = { streamMode: "custom" };
    expect(await collect(graph, { milliseconds: 120 }, custom)).toEqual([
      { sleeping: 120 },
      { tick: 1 },
      { slept: 120 },
    ]);
    const other = await fixture("sleep");
    expect(await collect(other, {}, { ...custom, context: { milliseconds: 1 } })).toContainEqual({
      slept: 1,
    });

    const controller = new AbortController();
    const sleeping = failure(
      graph.invoke({ milliseconds: 600_000 }, { ...thread, signal: controller.signal }),
    );
    controller.abort();
    expect((await sleeping).name).toBe("AbortError");
  });

  it("custom-events sends as many events as the input asks for", async () => {
    const events = await collect(await fixture("custom-events"), { count: 130 }, { streamMode: "custom" });
    expect(events).toEqual(Array.from({ length: 130 }, (_, index) => ({ index })));
  });

  it("failing fails in its second node, with the reason of the input", async () => {
    const graph = await fixture("failing");
    expect((await failure(graph.invoke({ reason: "Out of ink." }, thread))).message).toBe("Out of ink.");
    expect((await graph.getState(thread)).next).toEqual(["fail"]);
  });

  it("counter counts its runs", async () => {
    const graph = await fixture("counter");
    await graph.invoke({}, thread);
    expect(await graph.invoke({}, thread)).toMatchObject({ count: 2 });
  });

  it("tokens streams as many tokens as the input asks for", async () => {
    const chunks = await collect(await fixture("tokens"), { tokens: 30 }, { streamMode: "messages" });
    expect(chunks).toHaveLength(30);
    expect(new Set(chunks.map((chunk) => (chunk as [{ id: string }])[0].id)).size).toBe(1);
  });

  it("stubborn sleeps without checking the signal, and continues to its second node", async () => {
    const chunks = await collect(await fixture("stubborn"), { milliseconds: 1 }, { streamMode: "custom" });
    expect(chunks).toEqual([{ ignoring: true }, { ignored: true }]);
    const graph = await fixture("stubborn");
    expect(await graph.invoke({ milliseconds: 1 }, thread)).toMatchObject({
      messages: [{ content: "I did not listen." }, { content: "after" }],
    });
  });

  it("blocking blocks the whole event loop", async () => {
    const graph = await fixture("blocking");
    let [longest, last] = [0, performance.now()];
    const counter = setInterval(() => {
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
    }, 10);
    await graph.invoke({ milliseconds: 300 }, thread);
    await eventually("a turn after it", () => longest >= 290);
    clearInterval(counter);
  });
});
