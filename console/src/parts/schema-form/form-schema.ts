import type { RJSFSchema } from "@rjsf/utils";
import { isObject } from "../is-object.ts";
import {
  CHOICES_FIELD,
  firstValueOf,
  isInherited,
  isTypeName,
  JSON_FIELD,
  MESSAGES_FIELD,
  NULL,
  optionNameOf,
  staying,
} from "./kinds.ts";

export type JsonSchema = Readonly<Record<string, unknown>>;

/** Graphs may declare any schema; a larger form would not be usable. */
const LEVELS_AT_MOST = 8;
const NODES_AT_MOST = 400;
const OPTIONS_AT_MOST = 20;
const CHOICES_AT_MOST = 500;
const CHARACTERS_OF_TEXTS = 2_000;

/** A form does not support conditional fields. */
const CONDITIONAL = ["if", "dependencies", "dependentSchemas", "patternProperties", "prefixItems"] as const;
/** Validation checks all other keywords. */
const KEPT = ["minItems", "maxItems", "minimum", "maximum", "multipleOf"] as const;

const textOf = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value.slice(0, CHARACTERS_OF_TEXTS) : undefined;

/** The default is shown but not filled in. */
const wordsOf = (schema: JsonSchema): RJSFSchema => {
  const title = textOf(schema["title"]);
  const description = textOf(schema["description"]);
  const format = textOf(schema["format"]);
  const fallback = schema["default"];
  return {
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    ...(format !== undefined && { "x-format": format }),
    ...(fallback !== undefined && { "x-default": JSON.stringify(fallback).slice(0, CHARACTERS_OF_TEXTS) }),
  };
};

const jsonField = (schema: JsonSchema, reason?: string): RJSFSchema => ({
  ...wordsOf(schema),
  ...(isTypeName(schema["type"]) && { type: schema["type"] }),
  $id: JSON_FIELD,
  ...(reason !== undefined && { "x-reason": reason }),
});

const isJsonField = (schema: RJSFSchema): boolean => schema.$id === JSON_FIELD;

const resolve = (root: JsonSchema, reference: string): unknown => {
  if (!reference.startsWith("#")) return undefined;
  const path = reference.slice(1).split("/").slice(1);
  return path.reduce<unknown>((value, step) => {
    const key = decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
    return typeof value === "object" && value !== null && Object.hasOwn(value, key)
      ? (value as Record<string, unknown>)[key]
      : undefined;
  }, root);
};

const isScalar = (value: unknown): boolean =>
  value === null || ["string", "number", "boolean"].includes(typeof value);

/** Without references and of bounded size. */
class Preparation {
  #nodes = 0;
  readonly #root: JsonSchema;
  readonly #referred: string[] = [];

  constructor(root: JsonSchema) {
    this.#root = root;
  }

  prepare(given: unknown, depth = 0): RJSFSchema {
    this.#nodes += 1;
    if (!isObject(given)) return jsonField({});
    if (depth > LEVELS_AT_MOST || this.#nodes > NODES_AT_MOST)
      return jsonField(given, "there are too many fields");
    if (typeof given["$ref"] === "string") return this.#prepareReferred(given, given["$ref"], depth);
    if (given["langgraph_type"] === "messages")
      return { ...wordsOf(given), $id: MESSAGES_FIELD, type: "array" };
    if (CONDITIONAL.some((keyword) => given[keyword] !== undefined))
      return jsonField(given, "its fields depend on each other");
    if (Array.isArray(given["enum"])) return this.#prepareChoice(given, given["enum"]);
    if (given["const"] !== undefined)
      return isScalar(given["const"])
        ? { ...wordsOf(given), const: given["const"] as string }
        : jsonField(given);
    const { allOf, anyOf, oneOf, type } = given;
    if (Array.isArray(allOf)) return this.#prepareAll(given, allOf, depth);
    for (const [keyword, options] of [["anyOf", anyOf] as const, ["oneOf", oneOf] as const])
      if (Array.isArray(options)) return this.#prepareOptions(given, keyword, options, depth);
    if (Array.isArray(type)) {
      const { title: _title, description: _description, default: _default, ...rest } = given;
      const options = type.map((each: unknown) => ({ ...rest, type: each }));
      return this.#prepareOptions(given, "anyOf", options, depth);
    }
    return this.#prepareTyped(given, depth);
  }

  #prepareReferred(given: JsonSchema, reference: string, depth: number): RJSFSchema {
    const target = resolve(this.#root, reference);
    if (!isObject(target)) return jsonField(given, "its schema was not found");
    if (this.#referred.includes(reference)) return jsonField(given, "it may contain itself");
    const { $ref: _reference, ...own } = given;
    this.#referred.push(reference);
    const prepared = this.prepare({ ...target, ...own }, depth);
    this.#referred.pop();
    return prepared;
  }

  #prepareChoice(given: JsonSchema, choices: unknown[]): RJSFSchema {
    if (choices.length === 0 || choices.length > CHOICES_AT_MOST || !choices.every(isScalar))
      return jsonField(given);
    return {
      ...wordsOf(given),
      enum: choices as string[],
      ...(isTypeName(given["type"]) && { type: given["type"] }),
    };
  }

  /** An `allOf` often only adds a description. Plain objects are merged. */
  #prepareAll(given: JsonSchema, all: unknown[], depth: number): RJSFSchema {
    const { allOf: _all, ...own } = given;
    const parts = all.map((part) => {
      const reference = isObject(part) ? part["$ref"] : undefined;
      return typeof reference === "string" && !this.#referred.includes(reference)
        ? resolve(this.#root, reference)
        : part;
    });
    if (parts.length === 1 && isObject(parts[0])) return this.prepare({ ...parts[0], ...own }, depth);
    const objects = [own, ...parts];
    const isPlain = (part: unknown): part is Record<string, unknown> =>
      isObject(part) &&
      ["allOf", "anyOf", "oneOf", "$ref", "not", ...CONDITIONAL].every(
        (keyword) => part[keyword] === undefined,
      );
    if (parts.length > OPTIONS_AT_MOST || !objects.every(isPlain))
      return jsonField(given, "its schema is composed");
    return this.prepare(
      {
        ...Object.assign({}, ...parts, own),
        properties: Object.assign({}, ...objects.map(({ properties }) => properties)),
        required: objects.flatMap(({ required }) => (Array.isArray(required) ? required : [])),
      },
      depth,
    );
  }

  #prepareOptions(
    given: JsonSchema,
    keyword: "anyOf" | "oneOf",
    options: unknown[],
    depth: number,
  ): RJSFSchema {
    if (options.length > OPTIONS_AT_MOST || isObject(given["properties"])) return jsonField(given);
    if (options.length === 1 && isObject(options[0]))
      return this.prepare({ ...options[0], ...given, [keyword]: undefined }, depth);
    const prepared = options.map((option) =>
      isObject(option) && option["type"] === "null" ? { ...NULL } : this.prepare(option, depth + 1),
    );
    const taken = new Map<string, number>();
    for (const option of prepared) {
      const first = optionNameOf(option);
      const count = (taken.get(first) ?? 0) + 1;
      taken.set(first, count);
      option["x-unlabelled"] = true;
      option.title = count === 1 ? first : `${first} ${count}`;
    }
    return { ...wordsOf(given), [keyword]: prepared };
  }

  #prepareTyped(given: JsonSchema, depth: number): RJSFSchema {
    const kept = Object.fromEntries(
      KEPT.filter((keyword) => ["number", "boolean"].includes(typeof given[keyword])).map((keyword) => [
        keyword,
        given[keyword],
      ]),
    );
    const type = isObject(given["properties"]) ? "object" : given["type"];
    switch (type) {
      case "string":
      case "number":
      case "integer":
      case "boolean":
        return { ...wordsOf(given), ...kept, type };
      case "array":
        return this.#prepareList({ ...given, ...kept }, depth);
      case "object":
        return this.#prepareObject(given, depth);
      default:
        return jsonField(given);
    }
  }

  #prepareList(given: JsonSchema, depth: number): RJSFSchema {
    const { minItems, maxItems, items } = given;
    const item = isObject(items) ? this.prepare(items, depth + 1) : undefined;
    if (item === undefined || isJsonField(item))
      return jsonField(given, item?.["x-reason"] as string | undefined);
    // A choice that occurs twice is lost, but lists of choices are meant as sets.
    if (item.enum !== undefined && item.enum.length <= OPTIONS_AT_MOST)
      return { ...wordsOf(given), $id: CHOICES_FIELD, type: "array", items: item };
    const first = firstValueOf(item);
    return {
      ...wordsOf(given),
      ...({ minItems, maxItems } as RJSFSchema),
      type: "array",
      items: staying({
        ...item,
        "x-unlabelled": true,
        ...(first !== undefined && { default: first as string }),
      }),
    };
  }

  #prepareObject(given: JsonSchema, depth: number): RJSFSchema {
    const { properties, additionalProperties, required } = given;
    const entries = isObject(properties) ? Object.entries(properties) : [];
    if (entries.some(([name]) => isInherited(name)))
      return jsonField(given, "it has fields with unusual names");
    const others = isObject(additionalProperties) ? this.prepare(additionalProperties, depth + 1) : undefined;
    const isMap =
      others !== undefined &&
      !isJsonField(others) &&
      others.anyOf === undefined &&
      others.oneOf === undefined;
    if (entries.length === 0 && !isMap) return jsonField(given);
    const names = Array.isArray(required) ? required.filter((name) => typeof name === "string") : [];
    return {
      ...wordsOf(given),
      type: "object",
      properties: Object.fromEntries(
        entries.map(([name, property]) => {
          const prepared = this.prepare(property, depth + 1);
          return [name, names.includes(name) ? staying(prepared) : prepared];
        }),
      ),
      required: names,
      ...(isMap && { additionalProperties: { ...others, default: firstValueOf(others) as string } }),
    };
  }
}

/** `reason`: the end of a sentence. */
export const formSchemaOf = (schema: unknown): { schema: RJSFSchema } | { reason: string } => {
  if (!isObject(schema)) return { reason: "the graph declares no schema" };
  try {
    const prepared = new Preparation(schema).prepare(schema);
    if (prepared.type === "object" && !isJsonField(prepared)) return { schema: prepared };
    const reason = prepared["x-reason"] as string | undefined;
    return { reason: reason ?? "its schema names no fields" };
  } catch {
    // E.g. a malformed reference.
    return { reason: "its schema cannot be read" };
  }
};
