import { describe, expect, it } from "vitest";
import type { GraphSchemas } from "../../src/graphs/json-schemas.ts";
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

    const references = JSON.stringify(state_schema).match(/"\$ref":"[^"]*"/g) ?? [];
    expect(references.length).toBeGreaterThan(0);
    for (const reference of references) {
      const path = reference.slice('"$ref":"#/'.length, -1).split("/");
      const target = path.reduce<unknown>(
        (node, key) => (node as Record<string, unknown> | undefined)?.[key],
        state_schema,
      );
      expect(target).toBeTypeOf("object");
    }
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
