import { z } from "zod";
import type { JsonObject } from "../lib/json.ts";
import { isInherited } from "../lib/names.ts";
import { CURSOR_CHARACTERS } from "./cursors.ts";

/**
 * Field types that several rooms share. Two families: what is stored as `jsonb` and searched (metadata,
 * config, context), where PostgreSQL can keep neither NUL nor half a surrogate pair, so they are refused here;
 * and what is kept as text (a run's input), where anything goes that JSON can say.
 */

const UNSTORABLE = "holds a NUL character or half a surrogate pair, which can't be stored";

/** NUL (SQLSTATE 22P05) or a surrogate without its other half (22P02). */
const hasNul = (text: string): boolean => text.includes("\0");
const isStorableText = (text: string): boolean => !hasNul(text) && text.isWellFormed();

/** Size of what is kept beside a thread, a run or an assistant, and is merged, compared and sent with each of them. */
const ELEMENTS_AT_MOST = 20_000;
const CHARACTERS_AT_MOST = 1_000_000;

/**
 * Of metadata, each of whose members is an entry of an index (gin): 19,000 took a second where a disk is slow, 2,000 a tenth.
 */
export const METADATA_ELEMENTS_AT_MOST = 2_000;

/** Why PostgreSQL can't keep a value, or should not, as the end of a sentence; undefined if it can. */
const complaintOf = (root: unknown, isBounded: boolean, elementsAtMost: number): string | undefined => {
  let elements = -1; // the object itself is none
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
 * Text that PostgreSQL can store. For every id, name and key that a caller sends: half a surrogate pair makes even the
 * computing of a system assistant's id fail, which encodes it as UTF-8.
 */
export const storableText = z.string().refine(isStorableText, { error: UNSTORABLE });

/**
 * The namespace of a subgraph, segments joined by `|`. `@langchain/react` joins them with NUL, which no
 * `text` of PostgreSQL can hold: read as the separator that it stands for.
 */
export const checkpointNs = z
  .string()
  .transform((namespace) => namespace.replaceAll("\0", "|"))
  .pipe(storableText);

/** An object as it came: no key is dropped, none is interpreted. */
export const jsonObject = z
  .custom<JsonObject>((value) => typeof value === "object" && value !== null && !Array.isArray(value), {
    error: "must be an object",
  })
  .meta({ type: "object", additionalProperties: true });

const jsonbObject = (isBounded: boolean, elementsAtMost = ELEMENTS_AT_MOST) =>
  jsonObject.superRefine((value, context) => {
    const complaint = complaintOf(value, isBounded, elementsAtMost);
    if (complaint !== undefined) context.addIssue({ code: "custom", message: complaint });
  });

/** An object that is stored as `jsonb` beside a record: metadata, a configuration, a context, or a filter of them. */
export const storableObject = jsonbObject(true);

/** The metadata of a record. */
export const storableMetadata = jsonbObject(true, METADATA_ELEMENTS_AT_MOST);

/** An object that is stored as `jsonb` for its own sake, as large as a body may be. */
export const storableValue = jsonbObject(false);

/** Any JSON value, or none: a key that is missing is `undefined`. */
export const jsonValue = z.unknown().optional();

/** What LangGraph would take for a part of every object, see names.ts. */
const refusedName = (name: string): string => `names '${name}', which no graph can have`;

/** The name of a node. */
export const nodeName = storableText.refine((name) => !isInherited(name), {
  error: ({ input }) => refusedName(String(input)),
});

/** A jump to a node with an input of its own. */
const send = z.object({ node: nodeName, input: jsonValue });

/** Where a command goes. */
export const goto = z.union([nodeName, send, z.array(z.union([nodeName, send]))]);

const channelsOf = (update: JsonObject | [string, unknown][]): string[] =>
  Array.isArray(update) ? update.map(([name]) => name) : Object.keys(update);

/** What a command writes: values by channel, or a list of pairs where a channel is written several times. */
export const channelUpdate = z
  .union([jsonObject, z.array(z.tuple([z.string(), z.unknown()]))])
  .refine((update) => !channelsOf(update).some(isInherited), {
    error: ({ input }) =>
      refusedName(channelsOf(input as JsonObject | [string, unknown][]).find(isInherited) ?? ""),
  });

/** `null` is what several clients send for "not given". */
export const optional = <Schema extends z.ZodType>(schema: Schema) =>
  schema.nullish().transform((value): z.output<Schema> | undefined => value ?? undefined);

/**
 * Any of the 8-4-4-4-12 form, whatever its version says: PostgreSQL and the other servers take them all. In small
 * letters from here on, as PostgreSQL gives them back: what is kept in memory is found by the text.
 */
export const uuid = z.guid({ error: "must be a UUID" }).toLowerCase();

/** A body that may be missing altogether: clients send none where every field is optional. */
export const bodyOf = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.preprocess((body) => body ?? {}, z.object(shape));

const CONFIG_KEYS = ["tags", "recursion_limit", "max_concurrency", "configurable"] as const;

const knownConfig = z.looseObject({
  tags: z.array(storableText).optional(),
  recursion_limit: z.int().min(1).optional(),
  // LangGraph starts no task at all with less than one, nor with what is no number, and waits for ever.
  max_concurrency: z.int().min(1).optional(),
  configurable: jsonObject.optional(),
}) as z.ZodType<JsonObject, JsonObject>;

/**
 * A LangGraph config that is stored. Keys that we don't know stay as they came; the four we do must have the
 * type that a run will rely on, and a `null` there means "not given".
 */
export const storableConfig = storableObject
  .transform((config): JsonObject => {
    const given = { ...config };
    for (const key of CONFIG_KEYS) if (given[key] === null) delete given[key];
    return given;
  })
  .pipe(knownConfig)
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

/** Every answer but a 2xx. */
export const errorAnswer = z
  .object({ detail: z.string().describe("What was wrong, in one sentence that names the field or the id.") })
  .meta({ id: "ErrorResponse" });

/** Page bounds of every search. */
export const page = {
  limit: optional(z.int().min(1).max(1000)).transform((value) => value ?? 10),
  offset: optional(z.int().min(0).max(2_147_483_647)).transform((value) => value ?? 0),
};
export const sortOrder = optional(z.enum(["asc", "desc"]));
/** Of lists that can be read on where a page ended; `readCursor` reads it. */
export const cursor = optional(z.string().max(CURSOR_CHARACTERS)).describe(
  "The `X-Pagination-Cursor` of the page before, for the next one; with the same order and filters, without `offset`.",
);

const absentIfEmpty = (value: unknown): unknown => (value === "" ? undefined : value);

/** A yes/no in a query string: 0/1/true/false; empty means absent. */
export const queryBoolean = z.preprocess(
  absentIfEmpty,
  z
    .enum(["0", "1", "true", "false", "True", "False"])
    .optional()
    .transform((value) =>
      value === undefined ? undefined : value === "1" || value.toLowerCase() === "true",
    ),
);

/** A whole number in a query string; empty means absent. */
export const queryInteger = (minimum: number, maximum: number) =>
  z.preprocess(absentIfEmpty, z.coerce.number().int().min(minimum).max(maximum).optional());

/**
 * A list in a query string. It comes repeated (`a=1&a=2`, SDKs since 1.12), as one JSON string (`a=["1","2"]`,
 * SDKs before) or comma-joined (`a=1,2`, Python); empty means absent.
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
        // not JSON after all: taken as a comma-joined list below
      }
    }
    return item.split(",");
  });
  return flat.length === 0 ? undefined : flat;
}, z.array(storableText).optional());

/**
 * Query texts that may hold commas or be empty: repeated, or (SDKs up to 1.11 and 2.0) one JSON list. Undefined if the
 * parameter is absent.
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
