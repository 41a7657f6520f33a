import { describe, expect, it } from "vitest";
import { assistantDefaults } from "../../../src/graphs/project/assistant-defaults.ts";
import { readGraphConfig } from "../../../src/graphs/project/langgraph-json.ts";
import { aFile, failure } from "../helpers.ts";

describe("the config, the context and the questions of a graph in langgraph.json", () => {
  const read = async (graph: object) =>
    await readGraphConfig(
      await aFile("langgraph.json", JSON.stringify({ graphs: { agent: { path: "a:b", ...graph } } })),
    );

  it("are those of its system assistant", async () => {
    const { entries, warning } = await read({
      config: { recursion_limit: 9, tags: ["a"] },
      context: { a: 1, b: 2 },
    });
    expect(warning).toBeUndefined();
    expect(assistantDefaults(entries)).toEqual({
      agent: { config: { recursion_limit: 9, tags: ["a"] }, context: { a: 1, b: 2 }, starters: [] },
    });
  });

  it("has questions to begin with", async () => {
    const { entries, warning } = await read({ starters: ["What is new?"] });
    expect(warning).toBeUndefined();
    expect(assistantDefaults(entries)["agent"]?.starters).toEqual(["What is new?"]);
  });

  it("are empty if the file has none, whatever the graph's name", async () => {
    const entries = [{ id: "constructor" }, ...(await read({})).entries];
    const nothing = { config: {}, context: {}, starters: [] };
    expect(assistantDefaults(entries)).toEqual({ constructor: nothing, agent: nothing });
  });

  it.each([
    { config: { recursion_limit: "many" } },
    { context: [] },
    { config: { tags: ["\0"] } },
    { starters: ["x".repeat(501)] },
    { starters: "Hello?" },
    { starters: ["a\0b"] },
  ])("are refused at the start if invalid: %j", async (graph) => {
    expect((await failure(read(graph))).message).toContain("graphs.agent");
  });
});
