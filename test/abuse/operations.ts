/**
 * Requests from the server's own OpenAPI document: a valid sample of every operation, from which tests create others. New routes are
 * covered automatically.
 */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

interface Schema {
  $ref?: string;
  type?: string | string[];
  format?: string;
  enum?: Json[];
  const?: Json;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  items?: Schema;
  minimum?: number;
  exclusiveMinimum?: number;
}

interface Parameter {
  name: string;
  in: string;
  schema?: Schema;
}

interface Document {
  paths: Record<
    string,
    Record<
      string,
      { parameters?: Parameter[]; requestBody?: { content?: Record<string, { schema?: Schema }> } }
    >
  >;
  components?: { schemas?: Record<string, Schema> };
}

export interface Operation {
  method: string;
  /** In the document's form: `/threads/{thread_id}`. */
  template: string;
  path: Record<string, string>;
  query: Record<string, Json>;
  /** Bodies that differ in the branches of unions; empty if the operation has none. */
  bodies: Json[];
  headers?: Readonly<Record<string, string>>;
  /** Hardly a body without some of its fields would be valid. */
  isWhole?: boolean;
}

/** The depth to which a recursive schema is followed. */
const DEPTH_AT_MOST = 6;

/** The operations of a document. `known` has values by field, so that samples name existing records: an assistant, a thread. */
export const operationsOf = (document: unknown, known: Readonly<Record<string, Json>>): Operation[] => {
  const { paths, components } = document as Document;

  /** Values of a schema that differ in the branches of its unions; the first is the plainest. */
  const samplesOf = (schema: Schema, name: string, depth: number): Json[] => {
    if (Object.hasOwn(known, name)) return [known[name]!];
    if (depth > DEPTH_AT_MOST) return [null];
    if (schema.$ref !== undefined) {
      return samplesOf(components?.schemas?.[schema.$ref.split("/").at(-1)!] ?? {}, name, depth + 1);
    }
    const branches = schema.anyOf ?? schema.oneOf ?? schema.allOf;
    if (branches !== undefined) {
      const samples = branches.flatMap((branch) => samplesOf(branch, name, depth + 1));
      return samples.length > 1 ? samples.filter((sample) => sample !== null) : samples;
    }
    if (schema.const !== undefined) return [schema.const];
    if (schema.enum !== undefined) return schema.enum.slice(0, 1);
    switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
      case "string":
        return [schema.format === "uuid" ? "00000000-0000-4000-8000-000000000000" : "text"];
      case "integer":
      case "number":
        return [Math.max(1, schema.minimum ?? 1)];
      case "boolean":
        return [true];
      case "null":
        return [null];
      case "array":
        return samplesOf(schema.items ?? {}, name, depth + 1).map((item) => [item]);
      default:
        break;
    }
    if (schema.properties === undefined) return [{ key: "text" }];
    const choices = Object.entries(schema.properties).map(
      ([property, one]) => [property, samplesOf(one, property, depth + 1)] as const,
    );
    const plain = Object.fromEntries(choices.map(([property, samples]) => [property, samples[0] ?? null]));
    const others = choices.flatMap(([property, samples]) =>
      samples.slice(1).map((sample) => ({ ...plain, [property]: sample })),
    );
    return [plain, ...others];
  };

  return Object.entries(paths).flatMap(([template, methods]) =>
    Object.entries(methods).map(([method, { parameters = [], requestBody }]) => {
      const named = (place: string) =>
        Object.fromEntries(
          parameters
            .filter((parameter) => parameter.in === place)
            .map(({ name, schema = {} }) => [name, samplesOf(schema, name, 0)[0] ?? null]),
        );
      const body = Object.values(requestBody?.content ?? {})[0]?.schema;
      return {
        method: method.toUpperCase(),
        template,
        path: named("path") as Record<string, string>,
        query: named("query"),
        bodies: body === undefined ? [] : samplesOf(body, "", 0),
      };
    }),
  );
};

export const addressOf = ({
  template,
  path,
  query,
}: Pick<Operation, "template" | "path" | "query">): string => {
  const place = template.replaceAll(/\{([^}]+)\}/g, (_all, name: string) => percentEncoded(path[name] ?? ""));
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map(
      (one) =>
        `${percentEncoded(name)}=${percentEncoded(typeof one === "string" ? one : JSON.stringify(one))}`,
    ),
  );
  return pairs.length === 0 ? place : `${place}?${pairs.join("&")}`;
};

/** Half a surrogate pair has no percent encoding; it is written as the bytes that some clients send. */
const percentEncoded = (text: string): string =>
  [...text]
    .map((character) =>
      character.isWellFormed()
        ? encodeURIComponent(character)
        : [...surrogateBytes(character.charCodeAt(0))].map((byte) => `%${byte.toString(16)}`).join(""),
    )
    .join("");

const surrogateBytes = (unit: number): number[] => [
  0xe0 | (unit >> 12),
  0x80 | ((unit >> 6) & 0x3f),
  0x80 | (unit & 0x3f),
];

/** A value with one changed text, and its place: `input.messages.0.content`, a key in brackets. */
export interface ChangedText {
  at: string;
  value: Json;
}

/** Copies of a value, each with one changed text or key. */
export const withEachText = function* (value: Json, replacement: string, at = ""): Generator<ChangedText> {
  if (typeof value === "string") yield { at, value: replacement };
  else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      for (const changed of withEachText(item, replacement, `${at}.${index}`)) {
        yield {
          at: changed.at,
          value: value.map((other, place) => (place === index ? changed.value : other)),
        };
      }
    }
  } else if (typeof value === "object" && value !== null) {
    for (const [key, item] of Object.entries(value)) {
      for (const changed of withEachText(item, replacement, `${at}.${key}`)) {
        yield { at: changed.at, value: { ...value, [key]: changed.value } };
      }
      const { [key]: _moved, ...others } = value;
      yield { at: `${at}.[${key}]`, value: { ...others, [replacement]: item } };
    }
  }
};
