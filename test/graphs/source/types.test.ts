import { getPriority } from "node:os";
import { resolve } from "node:path";
import { beforeAll, expect, test } from "vitest";
import type { JsonObject, JsonValue } from "../../../src/platform/lib/json.ts";
import {
  startExtraction,
  type Extraction,
  type SourceSchemas,
} from "../../../src/graphs/source/extraction-process.ts";
import { FIXTURES } from "../helpers.ts";
import { aProject, graphText, SCHEMA_PROCESS } from "./project.ts";

/** Each extraction takes seconds of CPU, so one reads all graphs. */
const GRAPHS = {
  graph: "annotations.ts:graph",
  default: "annotations.ts:default",
  narrowed: "annotations.ts:narrowed",
  withContext: "annotations.ts:withContext",
  factory: "annotations.ts:factory",
  channels: "annotations.ts:channels",
  textToList: "annotations.ts:textToList",
  untyped: "annotations.ts:untyped",
  gone: "annotations.ts:gone",
  renamed: "renamed.ts:other",
  subgraphs: "subgraphs.ts:graph",
  documented: "documented.js:graph",
  sequence: "documented.js:sequence",
  noFile: "no-such-file.ts:graph",
  functional: "../forms/builders.ts:functional",
  plainJavaScript: "../forms/javascript.js:graph",
};

let extraction: Extraction;
let priority: number;

beforeAll(async () => {
  const entries = Object.entries(GRAPHS).map(([id, reference]) => {
    const [file = "", exportName = ""] = reference.split(":");
    return { id, file: resolve(FIXTURES, "types", file), exportName };
  });
  const process = startExtraction(SCHEMA_PROCESS, { folder: FIXTURES, entries });
  priority = getPriority(process.id);
  extraction = await process.extraction;
});

const graphsRead = (): string[] => extraction.graphs.map(([id]) => id);
const schemasOf = (id: keyof typeof GRAPHS, namespace = ""): SourceSchemas => {
  const [, found] = extraction.graphs.find(([graphId]) => graphId === id) ?? [];
  const [, schemas] = found?.find(([name]) => name === namespace) ?? [];
  if (schemas === undefined) throw new Error(`Nothing was read of ${id} "${namespace}".`);
  return schemas;
};

test.each<[key: string, schema: JsonObject]>([
  ["text", { type: "string", description: "What it is about." }],
  ["count", { type: "number" }],
  ["flag", { type: "boolean" }],
  ["colour", { type: "string", enum: ["red", "green"] }],
  ["size", { type: "number", enum: [0, 1] }],
  ["kind", { type: "string", enum: ["a", "b"] }],
  ["only", { type: "string", const: "one" }],
  ["maybe", { type: "string" }],
  ["nullable", { anyOf: [{ type: "null" }, { type: "string" }] }],
  [
    "either",
    {
      anyOf: [
        { type: "string" },
        { type: "number" },
        { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
      ],
    },
  ],
  [
    "address",
    {
      type: "object",
      properties: {
        street: { type: "string", description: "Without the number." },
        zip: { type: "string" },
        lines: { type: "array", items: { type: "string" } },
      },
      required: ["street", "lines"],
    },
  ],
  ["since", { type: "string", format: "date-time" }],
  ["list", { type: "array", items: { type: "string" } }],
  [
    "pair",
    { type: "array", items: { anyOf: [{ type: "string" }, { type: "number" }] }, minItems: 2, maxItems: 2 },
  ],
  ["scores", { type: "object", additionalProperties: { type: "number" } }],
  [
    "box",
    {
      type: "object",
      properties: { content: { type: "string" }, size: { type: "number" } },
      required: ["content", "size"],
    },
  ],
  [
    "part",
    {
      type: "object",
      properties: {
        street: { type: "string", description: "Without the number." },
        zip: { type: "string" },
      },
    },
  ],
  ["account", { type: "object", properties: { id: { type: "string" } }, required: ["id"] }],
  ["brand", { type: "string" }],
  // Types that JSON can't express, or that are unknown.
  ["lookup", {}],
  ["anything", {}],
  ["big", {}],
])("the type of %s is extracted", (key, schema) => {
  expect(schemasOf("graph").state[key]).toEqual(schema);
  expect(schemasOf("graph").output[key]).toEqual(schema);
});

test("an input has the type that the reducer accepts", () => {
  expect(schemasOf("graph").input.list).toEqual({ type: "string" });
  expect(schemasOf("graph").input.count).toEqual({ type: "number" });
});

test("messages are recognised by their type, whatever the key's name", () => {
  const { state, input } = schemasOf("graph");
  for (const schema of [state.messages, input.messages, state.history]) {
    expect(schema).toMatchObject({
      type: "array",
      langgraph_type: "messages",
      items: { type: "object", required: ["content"] },
    });
  }
  expect(state.last).toMatchObject({ type: "object", title: "Message" });
});

test("functions are not values", () => {
  expect(schemasOf("graph").state).not.toHaveProperty("act");
});

test("a type that contains itself becomes a definition, and an infinite one is cut", () => {
  const tree = {
    type: "object",
    properties: {
      name: { type: "string" },
      children: { type: "array", items: { $ref: "#/definitions/Tree" } },
    },
    required: ["name", "children"],
  };
  const { state } = schemasOf("graph");
  expect(state.tree).toEqual({ $ref: "#/definitions/Tree", definitions: { Tree: tree } });
  expect(state.endless).toMatchObject({ properties: { next: { properties: { value: { type: "array" } } } } });
  expect(JSON.stringify(state.endless).length).toBeLessThan(10_000);
});

test("a too large schema is reduced to its type", () => {
  const { state } = schemasOf("graph");
  expect(state.code).toEqual({ type: "string" });
  expect(state.doubled).toEqual({ type: "object" });
  expect(state.odd).toHaveProperty("properties");
});

test("names that every object inherits are treated like others", () => {
  const { properties, required } = schemasOf("graph").state.odd ?? {};
  expect(required).toEqual(["constructor", "__proto__"]);
  expect(Object.entries(properties as Record<string, JsonValue>)).toEqual([
    ["constructor", { type: "string" }],
    ["__proto__", { type: "number" }],
  ]);
});

test("a graph's own input, output and context are separate from its state", () => {
  expect(schemasOf("narrowed")).toEqual({
    state: { text: { type: "string" }, secret: { type: "number" } },
    input: { text: { type: "string" } },
    output: { result: { type: "boolean" } },
    context: { model: { type: "string", enum: ["small", "large"], description: "Which one answers." } },
  });
  expect(schemasOf("withContext").context).toEqual({ user: { type: "string" } });
});

test("default exports, exports of other files, builders, factories and type parameters are read", () => {
  expect(schemasOf("default")).toEqual(schemasOf("graph"));
  expect(schemasOf("renamed")).toEqual(schemasOf("narrowed"));
  expect(schemasOf("withContext").state).toEqual({ text: { type: "string" } });
  expect(schemasOf("factory").state).toEqual({
    content: { type: "object", properties: { id: { type: "number" } }, required: ["id"] },
  });
  expect(schemasOf("functional").input).toEqual({ text: { type: "string" } });
});

test("an interface for channels is read, and a text or a list has no fields", () => {
  const declared = { question: { type: "string" }, score: { type: "number" } };
  expect(schemasOf("channels")).toEqual({ state: declared, input: declared, output: declared, context: {} });
  expect(schemasOf("textToList")).toEqual({ state: {}, input: {}, output: {}, context: {} });
});

test("subgraphs are read from chains, variables, other files and options", () => {
  expect(schemasOf("subgraphs", "middle").state.level).toEqual({ type: "string", enum: ["low", "high"] });
  expect(schemasOf("subgraphs", "middle|deepest").state.depth).toEqual({ type: "number" });
  expect(schemasOf("subgraphs", "called").state.depth).toEqual({ type: "number" });
  expect(schemasOf("sequence", "listed")).toEqual(schemasOf("documented"));
  for (const name of ["deepest", "other|deepest"])
    expect(schemasOf("subgraphs", name)).toEqual(schemasOf("subgraphs", "called"));
  expect(schemasOf("subgraphs", "imported")).toEqual(schemasOf("narrowed"));
});

test("JavaScript has the types of its comments, and leaves others open", () => {
  expect(schemasOf("documented").state).toEqual({
    book: {
      type: "object",
      properties: { title: { type: "string" }, year: { type: "number" } },
      required: ["title"],
    },
    text: {},
  });
  expect(schemasOf("plainJavaScript").state).toEqual({ text: {} });
});

test("an export that is no graph, or missing, has no types and affects no other", () => {
  expect(graphsRead()).toEqual(
    Object.keys(GRAPHS).filter((id) => !["untyped", "gone", "noFile"].includes(id)),
  );
});

test("the process yields the CPU to all others", () => {
  expect(priority).toBeGreaterThan(getPriority());
});

test("with type errors, missing modules, old options, or declarations beside JavaScript, the known types are extracted", async () => {
  const folder = await aProject({
    "tsconfig.json": JSON.stringify({ extends: "./base.json", include: ["*.ts"] }),
    "base.json": JSON.stringify({
      compilerOptions: { target: "es5", module: "commonjs", strict: false, paths: { "@/*": ["./types/*"] } },
    }),
    "ambient.d.ts": "interface Everywhere { here: boolean }",
    "types/shapes.ts": "export interface Shape { edges: number | undefined }",
    "aliased.ts": `
      import type { Shape } from "@/shapes";
      ${graphText("{ shape: Shape; global: Everywhere }")}
    `,
    "mistakes.ts": `
      import { missing } from "./missing.ts";
      const wrong: number = "a text";
      ${graphText("{ text: string; from: Missing }")}
    `,
    "broken.ts": "export const graph = new (",
    "built.js": "export const graph = globalThis.graph;",
    "built.d.ts": `
      import type { Pregel } from "@langchain/langgraph";
      export declare const graph: Pregel<any, any, any, { typed: string }, { typed: string }>;
    `,
  });
  const entries = ["mistakes.ts", "broken.ts", "built.js", "aliased.ts"].map((name) => ({
    id: name,
    file: resolve(folder, name),
    exportName: "graph",
  }));
  const { graphs, origins, isComplete } = await startExtraction(SCHEMA_PROCESS, { folder, entries })
    .extraction;
  expect(isComplete).toBe(false);
  const found = new Map(graphs);
  expect(found.get("mistakes.ts")?.[0]?.[1].state.value).toMatchObject({
    type: "object",
    properties: { text: { type: "string" }, from: {} },
  });
  expect(found.get("built.js")?.[0]?.[1].input).toEqual({ typed: { type: "string" } });
  expect(found.get("aliased.ts")?.[0]?.[1].state.value).toEqual({
    type: "object",
    properties: {
      shape: { type: "object", properties: { edges: { type: "number" } } },
      global: { type: "object", properties: { here: { type: "boolean" } }, required: ["here"] },
    },
    required: ["shape", "global"],
  });
  expect(origins.map(([file]) => file)).toEqual(
    expect.arrayContaining(
      ["base.json", "types/shapes.ts", "tsconfig.json"].map((name) => resolve(folder, name)),
    ),
  );
  expect(found.has("broken.ts")).toBe(false);
});
