import { z } from "zod";
import type { JsonObject } from "../lib/json.ts";
import { isInherited } from "../lib/names.ts";
import { CURSOR_CHARACTERS } from "./cursors.ts";

/**
 * PostgreSQL searches or merges metadata, configs, contexts and items, and fails there for NUL and half a surrogate pair.
 * Other JSON (a run's input) may have any text.
 */

const UNSTORABLE = "holds a NUL character or half a surrogate pair, which can't be stored";

const isStorableText = (text: string): boolean => !text.includes("\0") && text.isWellFormed();

/** The value is merged, compared and sent with each thread, run or assistant. */
const ELEMENTS_AT_MOST = 20_000;
const CHARACTERS_AT_MOST = 1_000_000;

/** Each member of metadata is an entry of a GIN index. On a slow disk 19,000 members took 1 s, 2,000 took 0.1 s. */
export const METADATA_ELEMENTS_AT_MOST = 2_000;

/** The end of a sentence; undefined if PostgreSQL can store the value. */
const complaintOf = (root: unknown, isBounded: boolean, elementsAtMost: number): string | undefined => {
  let elements = -1;
  let characters = 0;
  const refusesText = (text: string): boolean => {
    characters += text.length;
    return !isStorableText(text);
  };
  const complaintOfItem = (value: unknown): string | undefined => {
    elements += 1;
    if (typeof value === "string") {
      if (refusesText(value)) return UNSTORABLE;
    } else if (Array.isArray(value)) {
      for (const item of value) {
        const complaint = complaintOfItem(item);
        if (complaint !== undefined) return complaint;
      }
    } else if (typeof value === "object" && value !== null) {
      for (const [key, item] of Object.entries(value)) {
        const complaint = refusesText(key) ? UNSTORABLE : complaintOfItem(item);
        if (complaint !== undefined) return complaint;
      }
    }
    if (!isBounded) return undefined;
    if (elements > elementsAtMost)
      return `holds more than ${elementsAtMost} elements (items of lists and members of objects)`;
    return characters > CHARACTERS_AT_MOST ? `holds more than ${CHARACTERS_AT_MOST} characters` : undefined;
  };
  return complaintOfItem(root);
};

/**
 * For all ids, names and keys from callers. Half a surrogate pair would also break `systemAssistantId`, which encodes
 * UTF-8.
 */
export const storableText = z.string().refine(isStorableText, { error: UNSTORABLE });

/**
 * The namespace of a subgraph, joined by `|`. `@langchain/react` joins the segments with NUL, which `text` can't hold.
 */
export const checkpointNs = z
  .string()
  .transform((namespace) => namespace.replaceAll("\0", "|"))
  .pipe(storableText);

const kindOf = (value: unknown): string => {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "number") return Number.isInteger(value) ? "an integer" : "a number";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
};

/** The predicate of a sentence about a value of another type. */
export const notA = (expected: string, value: unknown): string =>
  value === undefined ? "is required" : `must be ${expected}, not ${kindOf(value)}`;

export const jsonObject = z
  .custom<JsonObject>((value) => typeof value === "object" && value !== null && !Array.isArray(value), {
    error: ({ input }) => notA("an object", input),
  })
  .meta({ type: "object", additionalProperties: true });

const jsonbObject = (isBounded: boolean, elementsAtMost = ELEMENTS_AT_MOST) =>
  jsonObject.superRefine((value, context) => {
    const complaint = complaintOf(value, isBounded, elementsAtMost);
    if (complaint !== undefined) context.addIssue({ code: "custom", message: complaint });
  });

/** For metadata, configs, contexts and filters. */
export const storableObject = jsonbObject(true);

export const storableMetadata = jsonbObject(true, METADATA_ELEMENTS_AT_MOST);

/** For a store item: only the size of the body is limited. */
export const storableValue = jsonbObject(false);

export const jsonValue = z.unknown().optional();

/** LangGraph fails for names that every object inherits; see names.ts. */
const refusedName = (name: string): string => `names '${name}', which no graph can have`;

export const nodeName = storableText.refine((name) => !isInherited(name), {
  error: ({ input }) => refusedName(String(input)),
});

const send = z.object({ node: nodeName, input: jsonValue });

export const goto = z.union([nodeName, send, z.array(z.union([nodeName, send]))]);

const channelsOf = (update: JsonObject | [string, unknown][]): string[] =>
  Array.isArray(update) ? update.map(([name]) => name) : Object.keys(update);

/** Values by channel, or pairs, which can write a channel several times. */
export const channelUpdate = z
  .union([jsonObject, z.array(z.tuple([z.string(), z.unknown()]))])
  .refine((update) => !channelsOf(update).some(isInherited), {
    error: ({ input }) =>
      refusedName(channelsOf(input as JsonObject | [string, unknown][]).find(isInherited) ?? ""),
  });

/** Several clients send `null` for a field that is not given. */
export const optional = <Schema extends z.ZodType>(schema: Schema) =>
  schema.nullish().transform((value): z.output<Schema> | undefined => value ?? undefined);

/**
 * Any version, as in PostgreSQL and the other servers. Lower case, because in-memory maps compare ids with those that
 * PostgreSQL returns.
 */
export const uuid = z.guid({ error: "must be a UUID" }).toLowerCase();

/** Clients send no body if every field is optional. */
export const bodyOf = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.preprocess((body) => body ?? {}, z.object(shape));

export const noKnownMode = (known: readonly string[]): string =>
  `must name at least one of ${known.map((mode) => `'${mode}'`).join(", ")}`;

/**
 * Unknown modes beside known ones pass and emit nothing, because clients can be newer than the server. Unknown modes
 * alone would leave the stream empty without a reason.
 */
export const withKnownMode = <Schema extends z.ZodType<string | string[] | null | undefined>>(
  schema: Schema,
  known: readonly string[],
): Schema =>
  schema.refine(
    (given) => {
      const modes = [given ?? []].flat();
      return modes.length === 0 || modes.some((mode) => known.includes(mode));
    },
    { error: noKnownMode(known) },
  );

const CONFIG_KEYS = ["tags", "recursion_limit", "max_concurrency", "configurable"] as const;

const knownConfig = z.looseObject({
  tags: z.array(storableText).optional(),
  recursion_limit: z.int().min(1).optional(),
  // With a value below 1 or a non-number, LangGraph starts no task and waits for ever.
  max_concurrency: z.int().min(1).optional(),
  configurable: jsonObject.optional(),
}) as z.ZodType<JsonObject, JsonObject>;

/**
 * Keeps unknown keys, and the order: `knownConfig` alone would put its keys first. The four known keys must have the types
 * that a run needs; `null` means "not given".
 */
export const storableConfig = storableObject
  .transform((config): JsonObject => {
    const given = { ...config };
    for (const key of CONFIG_KEYS) if (given[key] === null) delete given[key];
    return given;
  })
  .pipe(jsonObject.and(knownConfig))
  .meta({
    type: "object",
    properties: {
      tags: { type: "array", items: { type: "string" } },
      recursion_limit: { type: "integer", minimum: 1 },
      max_concurrency: { type: "integer", minimum: 1 },
      configurable: { type: "object", additionalProperties: true },
    },
    additionalProperties: true,
  });

export const errorAnswer = z
  .object({ detail: z.string().describe("What was wrong, in one sentence that names the field or the id.") })
  .meta({ id: "ErrorResponse" });

export const page = {
  limit: optional(z.int().min(1).max(1000)).transform((value) => value ?? 10),
  offset: optional(z.int().min(0).max(2_147_483_647)).transform((value) => value ?? 0),
};
export const sortOrder = optional(z.enum(["asc", "desc"]));
export const cursor = optional(z.string().max(CURSOR_CHARACTERS)).describe(
  "The `X-Pagination-Cursor` of the page before, for the next one; with the same order and filters, without `offset`.",
);

const absentIfEmpty = (value: unknown): unknown => (value === "" ? undefined : value);

/** Empty means absent. */
export const queryBoolean = z.preprocess(
  absentIfEmpty,
  z
    .enum(["0", "1", "true", "false", "True", "False"], { error: "must be true or false" })
    .optional()
    .transform((value) =>
      value === undefined ? undefined : value === "1" || value.toLowerCase() === "true",
    ),
);

export const queryInteger = (minimum: number, maximum: number) =>
  z.preprocess(absentIfEmpty, z.coerce.number().int().min(minimum).max(maximum).optional());

/**
 * Repeated (`a=1&a=2`, SDKs since 1.12), one JSON string (`a=["1","2"]`, older SDKs) or comma-joined (`a=1,2`, Python).
 * Empty means absent.
 */
export const queryList = z.preprocess((value) => {
  const items = value === undefined ? [] : Array.isArray(value) ? (value as unknown[]) : [value];
  const flat = items.flatMap((item) => {
    if (typeof item !== "string" || item === "") return [];
    if (item.startsWith("[")) {
      try {
        const parsed: unknown = JSON.parse(item);
        if (Array.isArray(parsed)) return parsed as unknown[];
      } catch {
        // not JSON: read as a comma-joined list below
      }
    }
    return item.split(",");
  });
  return flat.length === 0 ? undefined : flat;
}, z.array(storableText).optional());

/**
 * Texts that may contain commas or be empty: repeated, or one JSON list (SDKs up to 1.11 and 2.0). Undefined if absent.
 */
export const queryTexts = (atMost: number) =>
  z.preprocess((value) => {
    if (typeof value !== "string") return value;
    if (!value.startsWith("[")) return [value];
    try {
      return JSON.parse(value) as unknown;
    } catch {
      return [value];
    }
  }, z.array(storableText).max(atMost).optional());
