import { z } from "zod";
import {
  bodyOf,
  jsonObject,
  optional,
  page,
  queryBoolean,
  storableText,
  storableValue,
} from "../../platform/domain/json-schemas.ts";
import { storableFilter } from "../../platform/domain/search-filter.ts";
import { keyComplaint, labelsComplaint, namespaceComplaint } from "./addresses.ts";

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
