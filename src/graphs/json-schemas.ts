import { isDeepStrictEqual } from "node:util";
import { toJsonSchema } from "@langchain/core/utils/json_schema";
import {
  getInteropZodObjectShape,
  isInteropZodObject,
  isInteropZodSchema,
  isZodSchemaV4,
} from "@langchain/core/utils/types";
import { z } from "zod";
import { isJsonObject, isObject, type JsonObject, type JsonValue } from "../platform/lib/json.ts";
import { ownField } from "../platform/lib/names.ts";
import type { RunnableGraph } from "./runnable-graph.ts";
import type { Properties, SourceSchemas } from "./source/extraction-process.ts";

export const messageSchema = (): JsonObject => ({
  type: "object",
  title: "Message",
  properties: {
    type: { type: "string", enum: ["human", "ai", "system", "developer", "tool", "function", "remove"] },
    role: { type: "string", enum: ["user", "assistant", "system", "developer", "tool"] },
    content: { anyOf: [{ type: "string" }, { type: "array", items: { type: "object" } }] },
    id: { type: "string" },
    name: { type: "string" },
    tool_calls: { type: "array", items: { type: "object" } },
    tool_call_id: { type: "string" },
  },
  required: ["content"],
});

/** Front ends recognise the list by LangGraph's key `langgraph_type`. */
export const messagesSchema = (): JsonObject => ({
  type: "array",
  title: "Messages",
  description: "A list of chat messages",
  langgraph_type: "messages",
  items: messageSchema(),
});

/** `$defs` of a document, by name. */
export type Definitions = Map<string, JsonValue | undefined>;

const stepTo = (name: string): string => encodeURIComponent(name.replaceAll("~", "~0").replaceAll("/", "~1"));

/** References count from the document's root, so the definitions of a property move there. */
export function propertySchema(key: string, schema: JsonObject, definitions: Definitions): JsonObject {
  const { definitions: older, $defs: newer, ...property } = schema;
  const own = Object.entries({ definitions: older, $defs: newer }).flatMap(([keyword, named]) =>
    isJsonObject(named)
      ? Object.entries(named as JsonObject).map(([name, made]) => ({ keyword, name, made }))
      : [],
  );
  for (let copy = 1; ; copy += 1) {
    const names = new Map(
      own.map(({ keyword, name }) => {
        // Zod numbers the types that have no name.
        const given = name.replace(/^__schema/, `${key}_`);
        return [`${keyword}/${name}`, copy === 1 ? given : `${given}_${copy}`];
      }),
    );
    const moved = <Part extends JsonValue | undefined>(part: Part): Part =>
      redirected(part, (reference) => {
        const [, keyword = "", name = "", ...deeper] = reference.split("/");
        const known = names.get(`${keyword}/${name}`);
        return known === undefined
          ? `#/properties/${stepTo(key)}${reference.slice(1)}`
          : [`#/$defs/${stepTo(known)}`, ...deeper].join("/");
      });
    const added = own.map(
      ({ keyword, name, made }) => [names.get(`${keyword}/${name}`) ?? name, moved(made)] as const,
    );
    // Two properties may have the same type, or two types of one name.
    const areFree = added.every(
      ([name, made]) => !definitions.has(name) || isDeepStrictEqual(definitions.get(name), made),
    );
    if (!areFree) continue;
    for (const [name, made] of added) definitions.set(name, made);
    return moved(property);
  }
}

/** Changes each `$ref` to a place in the document. */
export function redirected<Schema extends JsonValue | undefined>(
  schema: Schema,
  to: (reference: string) => string,
): Schema;
export function redirected(
  schema: JsonValue | undefined,
  to: (reference: string) => string,
): JsonValue | undefined {
  if (Array.isArray(schema)) return schema.map((item) => redirected(item, to));
  if (typeof schema !== "object" || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema).map(([key, item]) =>
      key === "$ref" && typeof item === "string" && /^#(\/|$)/.test(item)
        ? [key, to(item)]
        : [key, redirected(item, to)],
    ),
  );
}

/** Each has `properties`, because front ends read its keys without a check. */
export interface GraphSchemas {
  graph_id: string;
  input_schema: JsonObject;
  output_schema: JsonObject;
  state_schema: JsonObject;
  /** Keys of `config.configurable`, including those of the context. */
  config_schema: JsonObject;
  context_schema: JsonObject;
  provisional?: true;
}

const DRAFT = "http://json-schema.org/draft-07/schema#";
const FIELD = "field";

interface StateBuilder {
  /** Channels by key; always present. */
  _schemaDefinition?: Channels;
  _inputDefinition?: Channels;
  _outputDefinition?: Channels;
  /** A zod object or `StateSchema`; undefined or a symbol if only types declare the state. */
  _schemaRuntimeDefinition?: unknown;
  _inputRuntimeDefinition?: unknown;
  _outputRuntimeDefinition?: unknown;
  _configRuntimeSchema?: unknown;
  /** The registry of `withLangGraph`, from the user's copy of LangGraph. */
  _metaRegistry?: { get(schema: unknown): SchemaMeta | undefined };
}
interface SchemaMeta {
  jsonSchemaExtra?: JsonObject;
  reducer?: { schema?: unknown };
}
type Channels = Record<string, unknown>;

interface Field {
  /** Undefined if only its TypeScript type is known. */
  schema: unknown;
  extra: JsonObject | undefined;
}
/** `update`: what callers may write; `value`: what they read. */
type Direction = "update" | "value";

const builderOf = ({ builder }: RunnableGraph): StateBuilder =>
  isObject(builder) ? (builder as StateBuilder) : {};

export const isDeclaredByTypes = (graph: RunnableGraph): boolean =>
  !isObject(builderOf(graph)._schemaRuntimeDefinition);

const NO_SOURCE: SourceSchemas = { state: {}, input: {}, output: {}, context: {} };

/**
 * A graph of `Annotation.Root` has no schemas. Its channels give the keys, and its TypeScript source, else its default
 * values, give the types.
 */
export function graphSchemas(graphId: string, graph: RunnableGraph, source = NO_SOURCE): GraphSchemas {
  const builder = builderOf(graph);
  const state = builder._schemaRuntimeDefinition;
  const stateChannels = builder._schemaDefinition ?? {};
  // If the input is the whole state, LangGraph puts a symbol here instead of a schema.
  const input = isObject(builder._inputRuntimeDefinition) ? builder._inputRuntimeDefinition : state;
  const output = builder._outputRuntimeDefinition ?? state;
  const shape = (
    definition: unknown,
    channels: Channels,
    direction: Direction,
    types: Properties,
  ): JsonObject => objectSchema(fieldsOf(definition, direction, builder), channels, direction, types);
  const context = shape(builder._configRuntimeSchema, {}, "update", source.context);
  return {
    graph_id: graphId,
    input_schema: withoutRequired(
      shape(input, builder._inputDefinition ?? stateChannels, "update", source.input),
    ),
    output_schema: shape(output, builder._outputDefinition ?? stateChannels, "value", source.output),
    state_schema: shape(state, stateChannels, "value", source.state),
    config_schema: withoutRequired(context),
    context_schema: context,
  };
}

/** An input may omit any key of the state. */
const withoutRequired = ({ required: _, ...schema }: JsonObject): JsonObject => schema;

function fieldsOf(
  definition: unknown,
  direction: Direction,
  { _metaRegistry: registry }: StateBuilder,
): Map<string, Field> {
  const fields = new Map<string, Field>();
  if (isInteropZodObject(definition)) {
    for (const [key, schema] of Object.entries(getInteropZodObjectShape(definition))) {
      const meta = registry?.get(schema);
      const updates = direction === "update" ? meta?.reducer?.schema : undefined;
      fields.set(key, { schema: updates ?? schema, extra: meta?.jsonSchemaExtra });
    }
  } else if (isObject(definition) && isObject(definition.fields)) {
    for (const [key, value] of Object.entries(definition.fields))
      fields.set(key, stateField(value, direction));
  }
  return fields;
}

function stateField(value: unknown, direction: Direction): Field {
  if (!isObject(value)) return { schema: undefined, extra: undefined };
  const extra = isObject(value.jsonSchemaExtra) ? (value.jsonSchemaExtra as JsonObject) : undefined;
  if ("valueSchema" in value) {
    const updates = direction === "update" ? value.inputSchema : undefined;
    return { schema: updates ?? value.valueSchema, extra };
  }
  if (isStandardSchema(value) || isInteropZodSchema(value)) return { schema: value, extra };
  return { schema: value.schema, extra };
}

function objectSchema(
  fields: Map<string, Field>,
  channels: Channels,
  direction: Direction,
  types: Properties,
): JsonObject {
  // Channels name the keys. A context has only fields or types, and the functional API only types.
  const keys = [Object.keys(channels), [...fields.keys()], Object.keys(types)]
    .map((names) => names.filter((name) => !name.startsWith("__")))
    .find((names) => names.length > 0);
  const properties: JsonObject = {};
  const required: string[] = [];
  const definitions: Definitions = new Map();
  for (const key of keys ?? []) {
    const field = fields.get(key);
    const channel = instance(ownField(channels, key));
    const declared =
      field?.schema === undefined
        ? {}
        : propertySchema(key, convertedOrAnything(field.schema, direction), definitions);
    const schema: JsonObject = { ...declared, ...field?.extra };
    if (schema.langgraph_type === "messages" || holdsMessages(key, channel)) {
      properties[key] = { ...messagesSchema(), ...schema };
    } else if (field?.schema === undefined && !field?.extra) {
      const typed = propertySchema(key, ownField(types, key) ?? {}, definitions);
      properties[key] = typedSchema(typed, () => channelSchema(channel, direction));
    } else {
      properties[key] = schema;
    }
    if (field?.schema !== undefined && !mayBeAbsent(field.schema)) required.push(key);
  }
  return {
    $schema: DRAFT,
    type: "object",
    properties,
    ...(required.length > 0 ? { required } : {}),
    ...(definitions.size > 0 ? { $defs: Object.fromEntries(definitions) } : {}),
  };
}

function convertedOrAnything(schema: unknown, direction: Direction): JsonObject {
  try {
    const { $schema: _, ...converted } = convert(schema, direction);
    return converted;
  } catch {
    // A library without JSON schema support allows anything.
    return {};
  }
}

function convert(schema: unknown, direction: Direction): JsonObject {
  const io = direction === "update" ? "input" : "output";
  if (isZodSchemaV4(schema)) {
    // LangChain's function never ends for a recursive type. Inside an object, zod gives such a type a name.
    const { properties, definitions } = z.toJSONSchema(z.object({ [FIELD]: schema as z.ZodType }), {
      io,
      target: "draft-7",
      // Unrepresentable parts (a class, a date, a custom check) become "anything" instead of an error.
      unrepresentable: "any",
    }) as { properties: Record<typeof FIELD, JsonObject>; definitions?: JsonObject };
    return { ...properties[FIELD], ...(definitions === undefined ? {} : { definitions }) };
  }
  if (isInteropZodSchema(schema)) return withoutNothing(toJsonSchema(schema) as JsonObject);
  const standard = isStandardSchema(schema) ? schema["~standard"] : undefined;
  return standard?.jsonSchema?.[io]({ target: "draft-07" }) ?? {};
}

/**
 * Zod 3 writes an optional value as `anyOf: [{not: {}}, ...]`. The object's `required` already says that the value may
 * be absent.
 */
function withoutNothing(schema: JsonObject): JsonObject {
  const [first, second, ...more] = Array.isArray(schema.anyOf) ? schema.anyOf : [];
  if (!isJsonObject(first) || !isJsonObject(first.not) || !isJsonObject(second) || more.length > 0)
    return schema;
  const { anyOf: _, ...rest } = schema;
  const place = "#/anyOf/1";
  return redirected({ ...rest, ...(second as JsonObject) }, (reference) =>
    reference === place || reference.startsWith(`${place}/`)
      ? `#${reference.slice(place.length)}`
      : reference,
  );
}

function typedSchema({ description, ...typed }: JsonObject, ofChannel: () => JsonObject): JsonObject {
  const schema = Object.keys(typed).length > 0 ? typed : ofChannel();
  return description === undefined ? schema : { ...schema, description };
}

function channelSchema(channel: Record<string, unknown>, direction: Direction): JsonObject {
  // A reducer may accept other types than it returns.
  if (direction === "update" && typeof channel.operator === "function") return {};
  const value = defaultOf(channel);
  if (Array.isArray(value)) return { type: "array" };
  if (value === null || value === undefined) return {};
  return ["string", "number", "boolean", "object"].includes(typeof value) ? { type: typeof value } : {};
}

const MESSAGE_REDUCERS = ["messagesStateReducer", "messagesDeltaReducer"];

/** LangGraph's reducer, or the documented handwritten form: a list named `messages`. */
function holdsMessages(key: string, channel: Record<string, unknown>): boolean {
  const reducer = channel.operator ?? channel.reducer;
  if (typeof reducer !== "function") return false;
  return MESSAGE_REDUCERS.includes(reducer.name) || (key === "messages" && Array.isArray(defaultOf(channel)));
}

/** The default's factory is user code and may throw. */
function defaultOf(channel: Record<string, unknown>): unknown {
  if (typeof channel.initialValueFactory !== "function") return undefined;
  try {
    return (channel.initialValueFactory as () => unknown)();
  } catch {
    return undefined;
  }
}

function instance(channel: unknown): Record<string, unknown> {
  const made: unknown = typeof channel === "function" ? (channel as () => unknown)() : channel;
  return isObject(made) ? made : {};
}

function mayBeAbsent(schema: unknown): boolean {
  if (!isStandardSchema(schema)) return true;
  try {
    const result = schema["~standard"].validate(undefined);
    return isObject(result) && !("then" in result) && !result.issues;
  } catch {
    return true;
  }
}

interface StandardSchema {
  "~standard": {
    validate(value: unknown): unknown;
    jsonSchema?: Record<"input" | "output", (options: { target: string }) => JsonObject>;
  };
}

const isStandardSchema = (value: unknown): value is StandardSchema =>
  (isObject(value) || typeof value === "function") && "~standard" in value && isObject(value["~standard"]);
