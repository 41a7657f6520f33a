import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import type { GraphConfiguration } from "../../src/graphs/runnable-graph.ts";
import { aConfig, aFile, failure, FIXTURES, load, loadConfig, logger } from "./helpers.ts";
import { readGraphConfig } from "../../src/graphs/project/langgraph-json.ts";
import { loadGraphs } from "../../src/graphs/graphs.ts";

const textOf = async (path: string, config?: GraphConfiguration): Promise<unknown> => {
  const graphs = await load({ graph: path });
  const graph = await graphs.resolve("graph", config);
  return ((await graph.invoke({ text: "given" }, { configurable: {} })) as { text: string }).text;
};

describe("the forms of a graph", () => {
  it.each([
    ["a compiled graph", "forms/builders.ts:compiled", "compiled"],
    ["a builder that was not compiled", "forms/builders.ts:builder", "builder"],
    ["a promise of a graph", "forms/builders.ts:promise", "promise"],
    ["a promise of a builder", "forms/builders.ts:promisedBuilder", "promised builder"],
    ["the default export", "forms/builders.ts:default", "default"],
    ["the functional API", "forms/builders.ts:functional", "functional given"],
    ["a JavaScript module", "forms/javascript.js:graph", "javascript"],
    ["TypeScript with enums and parameter properties", "forms/typescript-syntax.ts:graph", "typescript"],
  ])("%s runs", async (_form, path, text) => {
    expect(await textOf(path)).toBe(text);
  });

  it.each(["factory", "asyncFactory", "builderFactory"])(
    "%s is called for each run with that run's config",
    async (name) => {
      const path = `forms/factories.ts:${name}`;
      expect(await textOf(path)).toBe("plain");
      expect(await textOf(path, { configurable: { tone: "formal" } })).toBe("formal");
      expect(await textOf(path, { context: { tone: "cheerful" } })).toBe("cheerful");
    },
  );

  it("an agent of createAgent calls its tools", async () => {
    const graphs = await load({ agent: "forms/agents.ts:agent" }, { checkpointer: new MemorySaver() });
    const graph = await graphs.resolve("agent");
    const config = { configurable: { thread_id: "1" } };
    await graph.invoke({ messages: [{ role: "user", content: "What is 2 + 3?" }] }, config);
    const { messages } = (await graph.getState(config)).values as {
      messages: { type: string; text: string }[];
    };
    expect(messages.map(({ type }) => type)).toEqual(["human", "ai", "tool", "ai"]);
    expect(messages.at(-1)?.text).toContain("2 + 3 = 5");
  });

  it("an error of a factory reaches the run unchanged", async () => {
    const graphs = await load({ graph: "forms/factories.ts:failingFactory" });
    const error = await failure(graphs.resolve("graph"));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toBe("This tenant has no model.");
  });

  it("a factory that can't build its graph can't be described either, and that is no server error", async () => {
    const graphs = await load({ graph: "forms/factories.ts:failingFactory" });
    for (const ask of [graphs.schemas("graph"), graphs.drawing("graph"), graphs.subgraphs("graph")]) {
      expect(await failure(ask)).toMatchObject({
        kind: "invalid",
        message: "Graph 'graph' can't be built from this config: TypeError: This tenant has no model.",
      });
    }
  });

  it("a factory that returns no graph causes an error with its id", async () => {
    const graphs = await load({ empty: "forms/factories.ts:emptyFactory" });
    expect((await failure(graphs.resolve("empty"))).message).toBe(
      "The factory of graph 'empty' returned a value of type undefined, not a graph.",
    );
  });
});

describe("langgraph.json", () => {
  it("names graphs in its order, with descriptions, relative to itself", async () => {
    const graphs = await loadConfig(`${FIXTURES}langgraph.json`);
    expect(graphs.ids.slice(0, 4)).toEqual(["agent", "approval", "research", "two-step"]);
    expect(graphs.has("two-step")).toBe(true);
    expect(graphs.has("toString")).toBe(false);
    const described = await loadConfig(
      await aFile("graphs.json", {
        graphs: { "team/a b": { path: `${FIXTURES}two-step.ts:graph`, description: "Two steps." } },
      }),
    );
    expect(described.ids).toEqual(["team/a b"]);
    expect(described.description("team/a b")).toBe("Two steps.");
  });

  it("returns the environment of its env file, of its env object, and nothing for a missing env file", async () => {
    const graphs = { a: "./a.ts:a" };
    const withObject = await aFile("langgraph.json", { graphs, env: { NAME: "value", LIMIT: 3 } });
    expect((await readGraphConfig(withObject)).environment).toEqual({ NAME: "value", LIMIT: "3" });
    const envFile = await aFile("keys.env", 'KEY="a b" # comment\n');
    const withFile = await aFile("langgraph.json", { graphs, env: envFile });
    expect((await readGraphConfig(withFile)).environment).toEqual({ KEY: "a b" });
    const withMissing = await aFile("langgraph.json", { graphs, env: ".env" });
    expect((await readGraphConfig(withMissing)).environment).toEqual({});
  });

  it.each([
    ["{", /langgraph\.json:1:2 is not JSON: Expected property name or '}'\.$/],
    ['{\n  "é": "é",\n}', /langgraph\.json:3:1 is not JSON: Expected double-quoted property name\.$/],
    ["{}", /not valid: graphs: must be an object like/],
    ['{"graphs": {}}', /names no graphs/],
    ['{"graphs": {"agent": 3}}', /graphs\.agent: must be "file:export" or/],
    ['{"graphs": {"agent": "./agent.ts"}}', /graph 'agent' is '.\/agent.ts', which does not name an export/],
    [
      '{"graphs": {"agent": "./agent.py:graph"}}',
      /graph 'agent' is '\.\/agent\.py:graph', which is Python: this server runs graphs of LangGraph\.js/,
    ],
    ['{"graphs": {"agent": {"path": "./agent.py"}}}', /'\.\/agent\.py', which is Python/],
    [
      '{"graphs": {"agent": "./agent.ts:graph", "__proto__": "./agent.ts:graph"}}',
      /no graph can be named '__proto__'/,
    ],
    ['{"graphs": {"__proto__": "./agent.ts:graph"}}', /no graph can be named '__proto__'/],
    ['{"graphs": {"agent": "./agent.ts:graph"}, "env": 3}', /env: must be the path of a file/],
  ])("is refused if it contains %s", async (text, message) => {
    const error = await failure(readGraphConfig(await aFile("langgraph.json", text)));
    expect(error.name).toBe("GraphLoadError");
    expect(error.message).toMatch(message);
  });

  it("is refused if it is missing, with its whole path", async () => {
    const error = await failure(loadConfig("/nowhere/langgraph.json"));
    expect(error.message).toBe(
      "There is no /nowhere/langgraph.json. It names the graphs of a project: start where it is, or name it with --config.",
    );
  });
});

describe("the start fails for a graph with", () => {
  it.each([
    [
      "a module that throws",
      "broken/throws.ts:graph",
      /throws\.ts\) can't be loaded: RangeError: The model list is empty\.$/m,
    ],
    ["a missing package", "broken/missing-package.js:graph", /a-package-that-is-not-installed/],
    [
      "a promise that rejects",
      "broken/rejects.ts:graph",
      /can't be built: Error: The prompt could not be fetched\.$/m,
    ],
    ["a builder that does not compile", "forms/builders.ts:unfinished", /can't be built: .*missing/],
    [
      "an object that is no graph",
      "forms/builders.ts:notAGraph",
      /'notAGraph' is a value of type object, not a graph/,
    ],
    [
      "an export that is undefined",
      "forms/builders.ts:nothing",
      /'nothing' is a value of type undefined, not a graph/,
    ],
  ])("%s", async (_case, path, message) => {
    const error = await failure(load({ broken: path }));
    expect(error.name).toBe("GraphLoadError");
    expect(error.message).toMatch(/^Graph 'broken' \(\/.*\)/);
    expect(error.message).toMatch(message);
  });

  it("a missing file", async () => {
    const error = await failure(load({ broken: "no-such-file.ts:graph" }));
    expect(error.message).toBe(`Graph 'broken': the file ${FIXTURES}no-such-file.ts does not exist.`);
  });

  it("an export that does not exist: the message lists the existing ones", async () => {
    const error = await failure(load({ agent: "forms/factories.ts:grahp" }));
    expect(error.message).toMatch(/^Graph 'agent' \(\/.*factories\.ts\) has no export 'grahp': it exports /);
    expect(error.message).toContain("'asyncFactory'");
  });

  it("several such errors, which are reported together", async () => {
    const error = await failure(
      load({ fine: "two-step.ts:graph", one: "two-step.ts:missing", two: "broken/throws.ts:graph" }),
    );
    expect(error.message.match(/^Graph '\w+'/gm)).toEqual(["Graph 'one'", "Graph 'two'"]);
  });
});

describe("a graph belongs to its server", () => {
  const thread = { configurable: { thread_id: "t" } };

  it("two servers in one process each have their own checkpointer", async () => {
    const savers = [new MemorySaver(), new MemorySaver()] as const;
    const [left, right] = await Promise.all(
      savers.map((checkpointer) => load({ counter: "counter.ts:graph" }, { checkpointer })),
    );
    const leftGraph = await left!.resolve("counter");
    const rightGraph = await right!.resolve("counter");
    await leftGraph.invoke({}, thread);
    await leftGraph.invoke({}, thread);
    await rightGraph.invoke({}, thread);
    expect((await leftGraph.getState(thread)).values).toMatchObject({ count: 2 });
    expect((await rightGraph.getState(thread)).values).toMatchObject({ count: 1 });
    expect(leftGraph.checkpointer).toBe(savers[0]);
    expect(rightGraph.checkpointer).toBe(savers[1]);
  });

  it.each([
    ["forms/builders.ts", "compiled"],
    ["forms/builders.ts", "functional"],
    ["forms/agents.ts", "agent"],
  ])("the user's own object is not changed (%s %s)", async (file, name) => {
    const module = (await import(/* @vite-ignore */ `${FIXTURES}${file}`)) as Record<
      string,
      Record<string, unknown>
    >;
    const own = (module[name]!.graph ?? module[name]) as Record<string, unknown>;
    const before = {
      ...own,
      triggers: JSON.stringify(own.triggerToNodes),
      channels: { ...(own.channels as object) },
    };
    const graphs = await load({ graph: `${file}:${name}` }, { checkpointer: new MemorySaver() });
    expect(await graphs.resolve("graph")).not.toBe(own);
    const after = {
      ...own,
      triggers: JSON.stringify(own.triggerToNodes),
      channels: { ...(own.channels as object) },
    };
    expect(after).toEqual(before);
    expect(Object.values(after.channels)).toEqual(Object.values(before.channels));
    expect(own.checkpointer).toBeUndefined();
  });

  it("a graph that a factory returns repeatedly stays unchanged", async () => {
    const { sharedFactory } = await import("../fixtures/forms/factories.ts");
    const checkpointer = new MemorySaver();
    const graphs = await load({ shared: "forms/factories.ts:sharedFactory" }, { checkpointer });
    expect((await graphs.resolve("shared")).checkpointer).toBe(checkpointer);
    expect(sharedFactory().checkpointer).toBeUndefined();
  });

  it("the server's checkpointer replaces one compiled into the graph", async () => {
    const checkpointer = new MemorySaver();
    const graphs = await load({ graph: "forms/builders.ts:withOwnCheckpointer" }, { checkpointer });
    expect((await graphs.resolve("graph")).checkpointer).toBe(checkpointer);
  });

  it("bindings of one call apply to that call only", async () => {
    const [own, attempt] = [new MemorySaver(), new MemorySaver()];
    const graphs = await load({ counter: "counter.ts:graph" }, { checkpointer: own });
    const bound = await graphs.resolve("counter", {}, { checkpointer: attempt });
    expect(bound.checkpointer).toBe(attempt);
    expect((await graphs.resolve("counter")).checkpointer).toBe(own);
  });

  it("an unknown graph causes a not-found error with its id", async () => {
    const graphs = await loadGraphs({ configPath: await aConfig({ a: "two-step.ts:graph" }), logger });
    for (const ask of [
      graphs.resolve("b"),
      graphs.schemas("b"),
      graphs.drawing("b"),
      graphs.subgraphs("b"),
    ]) {
      expect(await failure(ask)).toMatchObject({ kind: "not_found", message: "Graph 'b' not found." });
    }
    expect(() => graphs.description("b")).toThrow("Graph 'b' not found.");
  });
});
