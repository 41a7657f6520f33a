import { Ajv } from "ajv";
import { describe, expect, it } from "vitest";
import { graphSchemas, type GraphSchemas } from "../../src/graphs/json-schemas.ts";
import { load } from "./helpers.ts";

const schemasOf = async (path: string): Promise<GraphSchemas> =>
  (await load({ graph: path })).schemas("graph");

/** The draft of each document. */
const $schema = "http://json-schema.org/draft-07/schema#";

/** The fields by which front ends recognise a key with messages. */
const messages = expect.objectContaining({
  type: "array",
  langgraph_type: "messages",
  items: expect.objectContaining({ type: "object", required: ["content"] }) as unknown,
}) as unknown;

const referencesIn = (schema: unknown): string[] =>
  [...JSON.stringify(schema).matchAll(/"\$ref":"([^"]*)"/g)].map(([, reference = ""]) => reference);

const targetOf = (document: unknown, reference: string): unknown =>
  reference
    .split("/")
    .slice(1)
    .reduce<unknown>(
      (node, step) => (node as Record<string, unknown> | undefined)?.[decodeURIComponent(step)],
      document,
    );

describe("the JSON schemas of a graph", () => {
  it("come from zod 4: types, descriptions, defaults, reducers", async () => {
    const schemas = await schemasOf("forms/states.ts:zod4");
    expect(schemas.graph_id).toBe("graph");
    expect(schemas.state_schema).toEqual({
      $schema,
      type: "object",
      properties: {
        messages,
        topic: { type: "string", description: "What it is about" },
        depth: expect.objectContaining({ type: "integer", minimum: 1, default: 2 }) as unknown,
        // JSON schema has no type for a Date.
        since: {},
        list: { type: "array", items: { type: "string" } },
      },
      required: ["topic", "list"],
    });
    expect(schemas.output_schema).toEqual(schemas.state_schema);
    // An input may omit any key, and the reducer of `list` accepts one string at a time.
    expect(schemas.input_schema).toMatchObject({ properties: { messages, list: { type: "string" } } });
    expect(schemas.input_schema).not.toHaveProperty("required");
    expect(schemas.context_schema).toEqual({
      $schema,
      type: "object",
      properties: {
        model: { type: "string", enum: ["small", "large"], default: "small" },
        user: { type: "string" },
      },
      required: ["user"],
    });
    expect(schemas.config_schema.properties).toEqual(schemas.context_schema.properties);
  });

  it("come from zod 3", async () => {
    const schemas = await schemasOf("forms/states.ts:zod3");
    expect(schemas.state_schema).toEqual({
      $schema,
      type: "object",
      properties: {
        messages,
        topic: { type: "string" },
        depth: { type: "number", default: 2 },
        note: { type: "string" },
      },
      required: ["topic"],
    });
    expect(schemas.context_schema).toMatchObject({ properties: { model: { type: "string" } } });
  });

  it("come from a StateSchema, and the references of a recursive type can be resolved", async () => {
    const { state_schema, input_schema } = await schemasOf("forms/states.ts:stateSchema");
    expect(state_schema).toMatchObject({
      properties: { messages, total: { type: "number", default: 0 } },
      required: ["tree"],
    });
    expect(input_schema).toMatchObject({ properties: { messages, total: { type: "string" } } });

    expect(referencesIn(state_schema)).not.toEqual([]);
    for (const reference of referencesIn(state_schema))
      expect(targetOf(state_schema, reference)).toBeTypeOf("object");
  });

  it("name types that contain themselves, and what refers to them is found in each document", async () => {
    const { graph_id: _, ...schemas } = await schemasOf("forms/states.ts:recursive");
    const { input_schema, output_schema } = schemas;
    const root = input_schema.properties as Record<string, Record<string, unknown>>;
    expect(targetOf(input_schema, String(root["root"]?.["$ref"]))).toMatchObject({
      type: "object",
      properties: { name: { type: "string" }, folders: { type: "array", items: root["root"] } },
      required: ["name"],
    });
    expect(root["other root"]).toMatchObject({ description: "Another root" });
    expect(root["named"]).toMatchObject({ type: "array", items: { $ref: "#/$defs/Folder" } });
    // Another type of the same name.
    expect(root["namesake"]).toEqual({ allOf: [{ $ref: "#/$defs/Folder_2" }] });
    for (const schema of [input_schema, output_schema]) {
      expect(referencesIn(schema).length).toBeGreaterThan(6);
      for (const reference of referencesIn(schema)) expect(targetOf(schema, reference)).toBeTypeOf("object");
      const check = new Ajv({ allErrors: true }).compile(schema);
      const folder = { name: "a", folders: [{ name: "b", folders: [] }] };
      const named = [folder];
      expect(check({ root: folder, "other root": folder, named, namesake: { others: [] } })).toBe(true);
      expect(check({ root: { name: "a", folders: [{ name: 5 }] }, named })).toBe(false);
    }
    const { state_schema: ofZod3 } = await schemasOf("forms/states.ts:recursiveZod3");
    expect(ofZod3).toMatchObject({
      properties: { chain: { type: "object", properties: { next: { $ref: "#/properties/chain" } } } },
    });
    const check = new Ajv().compile(ofZod3);
    expect(check({ chain: { next: { next: {} } } })).toBe(true);
    expect(check({ chain: { next: { next: 5 } } })).toBe(false);
  });

  it("share the definitions of types from TypeScript, and keep two types of one name apart", async () => {
    const graphs = await load({ graph: "forms/states.ts:annotation" });
    const tree = (of: string) => ({
      $ref: "#/definitions/Tree",
      definitions: {
        Tree: { type: "object", properties: { of: { type: of }, next: { $ref: "#/definitions/Tree" } } },
      },
    });
    const state = { topic: tree("string"), tags: tree("string"), count: tree("number") };
    const source = { state, input: {}, output: {}, context: {} };
    const { state_schema } = graphSchemas("graph", await graphs.resolve("graph"), source);
    expect(state_schema).toMatchObject({
      properties: {
        topic: { $ref: "#/$defs/Tree" },
        tags: { $ref: "#/$defs/Tree" },
        count: { $ref: "#/$defs/Tree_2" },
      },
      $defs: {
        Tree: { properties: { of: { type: "string" }, next: { $ref: "#/$defs/Tree" } } },
        Tree_2: { properties: { of: { type: "number" }, next: { $ref: "#/$defs/Tree_2" } } },
      },
    });
  });

  it("come from the channels if the types exist in TypeScript only", async () => {
    const schemas = await schemasOf("forms/states.ts:annotation");
    expect(schemas.state_schema).toEqual({
      $schema,
      type: "object",
      properties: { messages, topic: {}, tags: { type: "array" }, count: { type: "number" } },
    });
    expect(schemas.input_schema).toEqual({ $schema, type: "object", properties: { topic: {} } });
    expect(schemas.output_schema).toEqual({
      $schema,
      type: "object",
      properties: { count: { type: "number" } },
    });
    expect(schemas.context_schema).toEqual({ $schema, type: "object", properties: {} });
  });

  it("name their draft, and are valid in it, whatever draft a schema library prefers", async () => {
    const { input_schema, state_schema } = await schemasOf("forms/states.ts:pair");
    const pair = { type: "array", items: [{ type: "string" }, { type: "number" }] };
    expect(state_schema).toMatchObject({ $schema, properties: { pair } });
    expect(input_schema).toMatchObject({ $schema, properties: { pair } });
  });

  it("recognise messages whose reducer was written by hand", async () => {
    const { input_schema } = await schemasOf("forms/states.ts:handWritten");
    expect(input_schema).toEqual({ $schema, type: "object", properties: { messages } });
  });

  it("of an agent contain its messages and its context", async () => {
    const schemas = await schemasOf("forms/agents.ts:agent");
    expect(schemas.input_schema).toMatchObject({ properties: { messages } });
    expect(schemas.output_schema).toMatchObject({ properties: { messages } });
    expect(schemas.context_schema).toMatchObject({ properties: { tone: { type: "string" } } });
  });

  it.each(["forms/builders.ts:functional", "forms/factories.ts:factory", "forms/builders.ts:builder"])(
    "have properties, for any form (%s)",
    async (path) => {
      const { graph_id: _, provisional: _none, ...schemas } = await schemasOf(path);
      expect(Object.keys(schemas)).toHaveLength(5);
      for (const schema of Object.values(schemas)) expect(schema.properties).toBeTypeOf("object");
    },
  );

  it("are JSON, and are built once", async () => {
    const graphs = await load({ graph: "forms/states.ts:zod4" });
    const schemas = await graphs.schemas("graph");
    expect(JSON.parse(JSON.stringify(schemas))).toEqual(schemas);
    expect(await graphs.schemas("graph")).toBe(schemas);
  });
});
