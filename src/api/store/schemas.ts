import {
  bodyOf,
  jsonObject,
  optional,
  page,
  queryBoolean,
  storableText,
  storableValue,
} from "../../platform/domain/json-schemas.ts";
import { z } from "zod";
import { storableFilter } from "../../platform/domain/search-filter.ts";

export interface ItemAddress {
  namespace: string[];
  key: string;
}

/**
 * Bytes of UTF-8, plus `BYTES_PER_LABEL` per label. Namespace and key form one btree entry, which PostgreSQL limits to
 * 2,704 bytes.
 */
const KEY_BYTES_AT_MOST = 1_000;
const NAMESPACE_BYTES_AT_MOST = 1_500;
const BYTES_PER_LABEL = 8;

/** Reserved by LangGraph. */
const RESERVED_ROOT = "langgraph";

const isStorable = (text: string): boolean => storableText.safeParse(text).success;

/** Why a search can't use these labels, as the end of a sentence; else undefined. */
export const textComplaint = (labels: readonly unknown[]): string | undefined => {
  const index = labels.findIndex((label) => typeof label !== "string" || !isStorable(label));
  if (index === -1) return undefined;
  return typeof labels[index] === "string"
    ? `label ${index + 1} holds a NUL character or half a surrogate pair`
    : `label ${index + 1} is not a text`;
};

/** By LangGraph's rules. */
export const labelsComplaint = (labels: readonly unknown[]): string | undefined => {
  const complaint = textComplaint(labels);
  if (complaint !== undefined) return complaint;
  const empty = labels.indexOf("");
  if (empty !== -1) return `label ${empty + 1} is empty`;
  const dotted = labels.findIndex((label) => (label as string).includes("."));
  return dotted === -1 ? undefined : `label ${dotted + 1} contains a period`;
};

/** The rules for storing an item. */
export const namespaceComplaint = (namespace: readonly unknown[]): string | undefined => {
  if (namespace.length === 0) return "needs at least one label";
  const complaint = labelsComplaint(namespace);
  if (complaint !== undefined) return complaint;
  if (namespace[0] === RESERVED_ROOT) return `begins with '${RESERVED_ROOT}', which is reserved`;
  const bytes = (namespace as string[]).reduce(
    (sum, label) => sum + Buffer.byteLength(label) + BYTES_PER_LABEL,
    0,
  );
  return bytes > NAMESPACE_BYTES_AT_MOST
    ? `takes ${bytes} bytes (${BYTES_PER_LABEL} per label and its text); at most ${NAMESPACE_BYTES_AT_MOST} are possible`
    : undefined;
};

export const keyComplaint = (key: unknown): string | undefined => {
  if (typeof key !== "string") return "is not a text";
  if (!isStorable(key)) return "holds a NUL character or half a surrogate pair";
  const bytes = Buffer.byteLength(key);
  return bytes > KEY_BYTES_AT_MOST
    ? `takes ${bytes} bytes; at most ${KEY_BYTES_AT_MOST} are possible`
    : undefined;
};

const labelsThat = (complaintOf: (labels: string[]) => string | undefined) =>
  z.array(z.string()).superRefine((labels, context) => {
    const complaint = complaintOf(labels);
    if (complaint !== undefined) context.addIssue({ code: "custom", message: complaint });
  });

/** A read may name a place where nothing can be stored. */
const labels = labelsThat(labelsComplaint);

const itemKey = z.string().superRefine((key, context) => {
  const complaint = keyComplaint(key);
  if (complaint !== undefined) context.addIssue({ code: "custom", message: complaint });
});

/** A hundred years. PostgreSQL's time ends in the year 294276. */
const TTL_MINUTES_AT_MOST = 100 * 366 * 24 * 60;

export const itemPutBody = z
  .object({
    namespace: labelsThat(namespaceComplaint),
    key: itemKey,
    value: storableValue,
    index: z
      .union([z.literal(false), z.array(storableText)], { error: "must be false, a list of paths or null" })
      .nullish()
      .describe(
        "Paths of the texts that semantic search is to find it by; false for none; null for the configured ones. Without " +
          "effect where no semantic search is configured.",
      ),
    ttl: z
      .number()
      .positive()
      .max(TTL_MINUTES_AT_MOST)
      .nullish()
      .describe("Minutes without a read or a write after which the item expires; null for never."),
  })
  .meta({ id: "StorePutRequest" });

/** `namespace=a.b`, as the SDKs send it, or repeated, or both: labels have no periods. */
const queryNamespace = z
  .preprocess((value) => {
    const parts = value === undefined ? [] : Array.isArray(value) ? (value as unknown[]) : [value];
    return parts.flatMap((part) => (typeof part === "string" && part !== "" ? part.split(".") : []));
  }, labels)
  .meta({ type: "array", items: { type: "string" } })
  .default([]);

export const itemGetQuery = z.object({
  namespace: queryNamespace,
  key: itemKey,
  refresh_ttl: queryBoolean.describe("Whether the read restarts the time to live."),
});

export const itemDeleteBody = z
  .object({ namespace: optional(labels), key: itemKey })
  .meta({ id: "StoreDeleteRequest" });

export const itemSearchBody = bodyOf({
  namespace_prefix: optional(labels),
  filter: optional(storableFilter).describe(
    "For each field, a value that it must equal, or an object with $eq, $ne, $in, $nin, $gt, $gte, $lt or $lte.",
  ),
  ...page,
  query: optional(storableText).describe(
    "Finds items by their meaning, the most similar first. Ignored if no semantic search is configured.",
  ),
  refresh_ttl: optional(z.boolean()).describe("Whether the read restarts the time to live of the items."),
});

const NAMESPACES_BY_DEFAULT = 100;
export const namespacesBody = bodyOf({
  prefix: optional(labels).describe("The first labels of the namespaces; '*' matches any label."),
  suffix: optional(labels).describe("The last labels of the namespaces; '*' matches any label."),
  max_depth: optional(z.int().min(1).max(2_147_483_647)),
  limit: optional(z.int().min(1).max(1_000)).transform((limit) => limit ?? NAMESPACES_BY_DEFAULT),
  offset: page.offset,
});

const time = z.string().meta({ format: "date-time" });
export const itemRecord = z
  .object({
    namespace: z.array(z.string()),
    key: z.string(),
    value: jsonObject,
    created_at: time,
    updated_at: time,
    ttl: z.number().optional().describe("Minutes without a read or a write after which the item expires."),
    expires_at: time
      .optional()
      .describe(
        "When the item expires without a read or a write. A read that restarts the time to live moves it.",
      ),
  })
  .meta({ id: "Item" });
const foundItem = itemRecord
  .extend({
    score: z.number().optional().describe("Cosine similarity, at most 1; only in a search with `query`."),
  })
  .meta({ id: "SearchItem" });
export const itemsAnswer = z.object({ items: z.array(foundItem) }).meta({ id: "SearchItemsResponse" });
export const namespacesAnswer = z
  .object({ namespaces: z.array(z.array(z.string())) })
  .meta({ id: "ListNamespaceResponse" });

export type ItemPut = z.output<typeof itemPutBody>;
export type ItemGet = z.output<typeof itemGetQuery>;
export type ItemDelete = z.output<typeof itemDeleteBody>;
export type ItemSearchRequest = z.output<typeof itemSearchBody>;
export type NamespacesRequest = z.output<typeof namespacesBody>;
export type ItemRecord = z.output<typeof foundItem>;
