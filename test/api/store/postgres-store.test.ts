import { InvalidNamespaceError } from "@langchain/langgraph-checkpoint";
import {
  Annotation,
  END,
  getStore,
  START,
  StateGraph,
  type LangGraphRunnableConfig,
} from "@langchain/langgraph";
import { HumanMessage } from "@langchain/core/messages";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openStore, type OpenStore } from "./open-store.ts";

describe("the store of a graph", () => {
  let open: OpenStore;
  beforeAll(async () => {
    open = await openStore();
  });
  afterAll(async () => {
    await open.close();
  });
  beforeEach(async () => {
    await open.empty();
  });

  const keys = async (prefix: string[], filter?: Record<string, unknown>) =>
    (await open.store.search(prefix, { filter, limit: 100 })).map(({ key }) => key).sort();

  it("keeps an item's times, and its creation time when it is replaced", async () => {
    await open.store.put(["users", "ada"], "likes", { tea: true });
    const first = await open.store.get(["users", "ada"], "likes");
    expect(first).toMatchObject({ namespace: ["users", "ada"], key: "likes", value: { tea: true } });
    expect(first!.createdAt).toBeInstanceOf(Date);
    expect(first!.updatedAt).toEqual(first!.createdAt);
    await open.store.put(["users", "ada"], "likes", { coffee: true });
    const second = await open.store.get(["users", "ada"], "likes");
    expect(second!.value).toEqual({ coffee: true });
    expect(second!.createdAt).toEqual(first!.createdAt);
    expect(second!.updatedAt.getTime()).toBeGreaterThanOrEqual(first!.updatedAt.getTime());
    await open.store.delete(["users", "ada"], "likes");
    expect(await open.store.get(["users", "ada"], "likes")).toBeNull();
  });

  it("accepts labels with every character literally", async () => {
    const odd = [
      "a%",
      "a_",
      "a*",
      "{a,b}",
      'quo"te',
      "back\\slash",
      "a b",
      "ä",
      "日本",
      "a\u0001",
      "a:b",
      "a,b",
      "NULL",
    ];
    await open.store.batch(odd.map((label) => ({ namespace: [label, "x"], key: label, value: { label } })));
    await open.store.put(["a"], "a", {});
    for (const label of odd) {
      expect(await keys([label])).toEqual([label]);
      expect((await open.store.get([label, "x"], label))?.value).toEqual({ label });
    }
    expect(await keys(["a"])).toEqual(["a"]);
    expect(await open.store.listNamespaces({ suffix: ["x"] })).toHaveLength(odd.length);
    expect(await open.store.listNamespaces({ prefix: ["a"] })).toEqual([["a"]]);
  });

  it("returns the last updated items first, page by page", async () => {
    for (const key of ["one", "two", "three"]) await open.store.put(["n"], key, {});
    await open.store.put(["n"], "one", {});
    const order = async (offset: number) =>
      (await open.store.search(["n"], { limit: 2, offset })).map(({ key }) => key);
    expect(await order(0)).toEqual(["one", "three"]);
    expect(await order(2)).toEqual(["two"]);
  });

  it("filters by equality, also of whole objects and lists, and by every operator", async () => {
    const values = { a: 1, b: 2, c: 3, text: "2", list: [1], object: { x: [1] }, none: null };
    for (const [key, field] of Object.entries(values)) await open.store.put(["n"], key, { field });
    await open.store.put(["n"], "absent", {});
    expect(await keys(["n"], { field: 2 })).toEqual(["b"]);
    expect(await keys(["n"], { field: null })).toEqual(["none"]);
    expect(await keys(["n"], { field: [1] })).toEqual(["list"]);
    expect(await keys(["n"], { field: { x: [1] } })).toEqual(["object"]);
    expect(await keys(["n"], { field: { $eq: "2" } })).toEqual(["text"]);
    expect(await keys(["n"], { field: { $ne: 2 } })).toEqual(
      ["a", "absent", "c", "list", "none", "object", "text"].sort(),
    );
    expect(await keys(["n"], { field: { $gt: 2 } })).toEqual(["c"]);
    expect(await keys(["n"], { field: { $gte: 2 } })).toEqual(["b", "c", "text"]);
    expect(await keys(["n"], { field: { $lt: 2 } })).toEqual(["a", "none"]);
    expect(await keys(["n"], { field: { $lte: "2", $gt: 0 } })).toEqual(["a", "b", "text"]);
    expect(await keys(["n"], { field: { $in: [1, "2"] } })).toEqual(["a", "text"]);
    expect(await keys(["n"], { field: { $nin: [1, 2, 3, "2", null] } })).toEqual([
      "absent",
      "list",
      "object",
    ]);
  });

  it("never fails a comparison because of an unusual item", async () => {
    const odd = ["1e999999", "9".repeat(5_000), "1e", ".", "NaN", "Infinity", "0x10", { x: 1 }, [5], 1e308];
    await open.store.batch(
      odd.map((field, index) => ({ namespace: ["n"], key: `${index}`, value: { field } })),
    );
    expect(await keys(["n"], { field: { $gt: 5 } })).toEqual(["9"]);
    expect(await keys(["n"], { field: { $gt: -Infinity } })).toEqual(["9"]);
    expect(await keys(["n"], { field: { $lt: "no number" } })).toEqual([]);
  });

  it("treats filters as data, not as SQL", async () => {
    await open.store.put(["n"], "k", { "'; drop table store_items; --": "' or true --" });
    expect(await keys(["n"], { "'; drop table store_items; --": "' or true --" })).toEqual(["k"]);
    expect(await keys(["n"], { x: "' or true --" })).toEqual([]);
  });

  it("refuses an unknown operator, and ignores a query without an index", async () => {
    await expect(open.store.search(["n"], { filter: { age: { $regex: "x" } } })).rejects.toThrow(
      "'filter.age': '$regex' is not one of the operators",
    );
    await open.store.put(["n"], "k", { text: "tea" });
    for (const query of ["who likes tea?", ""])
      expect((await open.store.search(["n"], { query })).map(({ key }) => key)).toEqual(["k"]);
  });

  it("refuses the same namespaces as LangGraph, and then executes nothing of the batch", async () => {
    for (const namespace of [[], ["a.b"], [""], ["langgraph", "x"], ["x".repeat(1_500)]]) {
      const batch = open.store.batch([
        { namespace: ["good"], key: "k", value: {} },
        { namespace, key: "k", value: {} },
      ]);
      await expect(batch).rejects.toThrow(InvalidNamespaceError);
    }
    expect(await open.store.listNamespaces()).toEqual([]);
  });

  it("refuses text that can't be stored, in every place", async () => {
    for (const text of ["a\0b", "\ud83d"]) {
      for (const value of [{ text }, { deep: [{ [text]: 1 }] }]) {
        await expect(open.store.put(["n"], "k", value)).rejects.toThrow("'k' holds a NUL character or half");
      }
      await expect(open.store.put(["n"], text, {})).rejects.toThrow("NUL");
      await expect(open.store.get([text], "k")).rejects.toThrow("NUL");
      await expect(open.store.search(["n"], { filter: { text } })).rejects.toThrow("'filter'");
    }
    await open.store.put(["n"], "k", { text: "\\u0000 and \\ud83d are spelled out, 😀 is whole" });
    expect((await open.store.get(["n"], "k"))?.value).toEqual({
      text: "\\u0000 and \\ud83d are spelled out, 😀 is whole",
    });
  });

  it("stores the longest key under the longest namespace, even if they can't be compressed", async () => {
    const random = (length: number) =>
      Array.from({ length }, (_, index) =>
        String.fromCharCode(33 + ((index * index * 7919 + index * 31) % 90)),
      ).join("");
    const label = random(1_492).replaceAll(".", "x");
    await open.store.put([label], random(1_000), { found: true });
    expect(await open.store.search([label])).toHaveLength(1);
    await expect(open.store.put([label], random(1_001), {})).rejects.toThrow("at most 1000 are possible");
  });

  it("stores messages and dates in the form that clients see", async () => {
    await open.store.put(["n"], "k", { message: new HumanMessage("hi"), at: new Date(0) });
    expect((await open.store.get(["n"], "k"))?.value).toMatchObject({
      message: { type: "human", content: "hi" },
      at: "1970-01-01T00:00:00.000Z",
    });
  });

  it("lets crossing batches through without a deadlock", async () => {
    const names = Array.from({ length: 40 }, (_, index) => `k${index}`);
    const put = (order: string[]) =>
      open.store.batch(order.map((key) => ({ namespace: ["n"], key, value: { key } })));
    const remove = (order: string[]) =>
      open.store.batch(order.map((key) => ({ namespace: ["n"], key, value: null })));
    const backwards = names.toReversed();
    for (let round = 0; round < 10; round += 1) {
      await Promise.all([put(names), put(backwards), remove(names), remove(backwards)]);
    }
    await put(names);
    expect(await keys(["n"])).toEqual([...names].sort());
  });

  it("lists namespaces by depth in pages, each once, however many items they hold", async () => {
    const operations = ["a", "b", "c"].flatMap((first) =>
      ["x", "y"].flatMap((second) =>
        ["1", "2", "3"].map((key) => ({ namespace: ["users", first, second], key, value: {} })),
      ),
    );
    await open.store.batch([...operations, { namespace: ["users"], key: "k", value: {} }]);
    expect(await open.store.listNamespaces({ maxDepth: 2 })).toEqual([
      ["users"],
      ["users", "a"],
      ["users", "b"],
      ["users", "c"],
    ]);
    expect(await open.store.listNamespaces({ maxDepth: 2, limit: 2, offset: 2 })).toEqual([
      ["users", "b"],
      ["users", "c"],
    ]);
    expect(await open.store.listNamespaces({ prefix: ["*", "b"], suffix: ["y"] })).toEqual([
      ["users", "b", "y"],
    ]);
  });

  it("serves the nodes of a graph, across threads", async () => {
    const State = Annotation.Root({ user: Annotation<string>, known: Annotation<string[]> });
    const graph = new StateGraph(State)
      .addNode("remember", async ({ user }, config: LangGraphRunnableConfig) => {
        await Promise.all(
          ["tea", "rain"].map((thing) => config.store!.put(["likes", user], thing, { thing })),
        );
        return {};
      })
      .addNode("recall", async ({ user }) => {
        const store = getStore()!;
        const [items, tea, missing] = await Promise.all([
          store.search(["likes", user]),
          store.get(["likes", user], "tea"),
          store.get(["likes", user], "snow"),
        ]);
        const known = items.map(({ value }) => value.thing as string).sort();
        return { known: [...known, String(tea?.value.thing), String(missing)] };
      })
      .addEdge(START, "remember")
      .addEdge("remember", "recall")
      .addEdge("recall", END)
      .compile({ store: open.store });
    const { known } = await graph.invoke({ user: "ada" });
    expect(known).toEqual(["rain", "tea", "tea", "null"]);
  });
});
