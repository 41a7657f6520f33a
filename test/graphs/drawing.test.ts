import { describe, expect, it } from "vitest";
import { EXAMPLES, load, loadConfig } from "./helpers.ts";

describe("the drawing of a graph", () => {
  it("contains its nodes and edges, with conditional ones marked", async () => {
    const graphs = await loadConfig(EXAMPLES);
    const { nodes, edges } = await graphs.drawing("agent");
    expect(nodes.map(({ id }) => id)).toEqual(["__start__", "agent", "tools", "__end__"]);
    expect(nodes[1]).toEqual({
      id: "agent",
      type: "runnable",
      data: { id: ["langgraph", "RunnableCallable"], name: "agent" },
    });
    expect(edges).toContainEqual({ source: "__start__", target: "agent", conditional: false });
    expect(edges).toContainEqual({ source: "agent", target: "tools", conditional: true });
  });

  it("has edges of only four keys, for any graph", async () => {
    const graphs = await loadConfig(EXAMPLES);
    for (const id of graphs.ids) {
      for (const edge of (await graphs.drawing(id, true)).edges) {
        const known = ["source", "target", "data", "conditional"];
        expect(Object.keys(edge).filter((key) => !known.includes(key))).toEqual([]);
      }
    }
  });

  it("opens subgraphs to the requested depth", async () => {
    const graphs = await load({ nested: "forms/nested.ts:graph" });
    const ids = async (xray: boolean | number) =>
      (await graphs.drawing("nested", xray)).nodes.map(({ id }) => id);
    expect(await ids(false)).toEqual(["__start__", "middle", "plain", "__end__"]);
    expect(await ids(0)).toEqual(await ids(false));
    expect(await ids(1)).toContain("middle:inner");
    expect(await ids(2)).toContain("middle:inner:deepest");
    expect(await ids(true)).toEqual(await ids(2));
  });

  it("contains the metadata of nodes", async () => {
    const graphs = await load({ nested: "forms/nested.ts:graph" });
    const { nodes } = await graphs.drawing("nested");
    expect(nodes.find(({ id }) => id === "middle")).toMatchObject({ metadata: { colour: "blue" } });
    expect(nodes.find(({ id }) => id === "plain")).not.toHaveProperty("metadata");
  });

  it.each(["forms/builders.ts:functional", "forms/agents.ts:agent", "forms/factories.ts:factory"])(
    "exists for every form (%s)",
    async (path) => {
      const graphs = await load({ graph: path });
      expect((await graphs.drawing("graph", true)).nodes.length).toBeGreaterThan(1);
    },
  );
});

describe("the subgraphs of a graph", () => {
  it("are found by namespace, with their schemas", async () => {
    const graphs = await load({ nested: "forms/nested.ts:graph" });
    const direct = await graphs.subgraphs("nested");
    expect(Object.keys(direct)).toEqual(["middle"]);
    expect(direct.middle).toMatchObject({ graph_id: "nested", state_schema: { properties: { text: {} } } });

    const all = await graphs.subgraphs("nested", undefined, true);
    expect(Object.keys(all)).toEqual(["middle", "middle|inner"]);
    expect(all["middle|inner"]?.state_schema).toMatchObject({
      properties: { text: { type: "string" }, depth: { type: "number" } },
    });
  });

  it("of one namespace are only that one, with or without recurse", async () => {
    const graphs = await load({ nested: "forms/nested.ts:graph" });
    expect(Object.keys(await graphs.subgraphs("nested", "middle"))).toEqual(["middle"]);
    expect(Object.keys(await graphs.subgraphs("nested", "middle|inner", true))).toEqual(["middle|inner"]);
    expect(Object.keys(await graphs.subgraphs("nested", "middle|inner"))).toEqual(["middle|inner"]);
    expect(await graphs.subgraphs("nested", "nowhere", true)).toEqual({});
  });

  it("are empty for a graph without any", async () => {
    const graphs = await loadConfig(EXAMPLES);
    expect(await graphs.subgraphs("agent", undefined, true)).toEqual({});
    expect(Object.keys(await graphs.subgraphs("research"))).toEqual(["investigate"]);
  });
});
