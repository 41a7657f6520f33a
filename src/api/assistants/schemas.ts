import { z } from "zod";
import {
  bodyOf,
  cursor,
  jsonObject,
  jsonValue,
  optional,
  page,
  queryBoolean,
  queryInteger,
  sortOrder,
  storableConfig,
  storableMetadata,
  storableObject,
  storableText,
  uuid,
} from "../../platform/domain/json-schemas.ts";
import { storableFilter } from "../../platform/domain/search-filter.ts";

const SORT_FIELDS = ["assistant_id", "created_at", "updated_at", "name", "graph_id"] as const;

const time = z.string().meta({ format: "date-time" });

export const assistantRecord = z
  .object({
    assistant_id: z.string().meta({ format: "uuid" }),
    graph_id: z.string(),
    name: z.string(),
    description: z.string().nullable(),
    config: jsonObject,
    context: jsonObject,
    metadata: jsonObject,
    version: z.int().describe("The active version; in a list of versions, the number of this version."),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: "Assistant" });

const assistantField = assistantRecord.keyof();
export type AssistantField = z.output<typeof assistantField>;
export const ASSISTANT_FIELDS = assistantField.options;

export const assistantExtract = assistantRecord.partial();

const name = storableText.describe("Defaults to 'Untitled'.");
const configuration = {
  config: optional(storableConfig),
  context: optional(storableObject),
};

export const assistantPath = z.object({
  assistant_id: storableText.describe("The assistant's id, or a graph id for the graph's system assistant."),
});

export const assistantCreateBody = z
  .object({
    assistant_id: optional(uuid),
    graph_id: storableText,
    name: optional(name),
    description: optional(storableText),
    ...configuration,
    metadata: optional(storableMetadata),
    if_exists: optional(z.enum(["raise", "do_nothing"])),
  })
  .meta({ id: "AssistantCreate" });

const REPLACES = "Replaces the former value completely. If the body omits it, the new version has none.";

export const assistantPatchBody = z
  .object({
    graph_id: optional(storableText),
    name: optional(storableText),
    description: optional(storableText),
    config: configuration.config.describe(REPLACES),
    context: configuration.context.describe(REPLACES),
    metadata: optional(storableMetadata),
  })
  .meta({ id: "AssistantPatch" });

const filter = {
  graph_id: optional(storableText),
  name: optional(storableText).describe("A part of the name; upper and lower case are equal."),
  metadata: optional(storableFilter),
};

export const assistantSearchBody = bodyOf({
  ...filter,
  ...page,
  cursor,
  sort_by: optional(z.enum(SORT_FIELDS)),
  sort_order: sortOrder,
  select: optional(z.array(assistantField)),
});

export const assistantCountBody = bodyOf(filter);

export const assistantVersionsBody = bodyOf({ metadata: filter.metadata, ...page });

/** The published contract has `version` in both; clients send the body. */
export const latestQuery = z.object({
  version: queryInteger(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
});
export const latestBody = bodyOf({ version: optional(z.int()) });

export const deleteQuery = z.object({
  delete_threads: queryBoolean.describe(
    "Also delete the threads whose metadata.assistant_id is this assistant.",
  ),
});

const xray = z
  .string()
  .optional()
  .transform((text, context): boolean | number => {
    const value = text?.toLowerCase() ?? "";
    if (value === "" || value === "false" || value === "0") return false;
    if (value === "true") return true;
    if (/^\d{1,9}$/.test(value)) return Number(value);
    context.addIssue({ code: "custom", message: "must be true, false or a depth of at least 0" });
    return z.NEVER;
  })
  .meta({ oneOf: [{ type: "boolean" }, { type: "integer" }], default: false });
export const drawingQuery = z.object({ xray });

export const subgraphsQuery = z.object({ recurse: queryBoolean });
export const subgraphsPath = assistantPath.extend({ namespace: storableText });

export const graphSchemas = z
  .object({
    graph_id: z.string(),
    input_schema: jsonObject,
    output_schema: jsonObject,
    state_schema: jsonObject,
    config_schema: jsonObject,
    context_schema: jsonObject,
    provisional: z
      .literal(true)
      .optional()
      .describe(
        "The server is still reading the graph's source. Repeat the request for the types of the fields.",
      ),
  })
  .meta({ id: "GraphSchema" });
export const subgraphSchemas = z.record(z.string(), graphSchemas).meta({ id: "Subgraphs" });

export const graphDrawing = z.object({
  nodes: z.array(
    z.object({
      id: z.string(),
      type: z.string().optional(),
      data: jsonValue.optional(),
      metadata: jsonObject.optional(),
    }),
  ),
  edges: z.array(
    z.object({
      source: z.string(),
      target: z.string(),
      data: jsonValue.optional(),
      conditional: z.boolean().optional(),
    }),
  ),
});

export type Assistant = z.output<typeof assistantRecord>;
export type AssistantCreate = z.output<typeof assistantCreateBody>;
export type AssistantPatch = z.output<typeof assistantPatchBody>;
export type AssistantFilter = z.output<typeof assistantCountBody>;
export type AssistantSearch = z.output<typeof assistantSearchBody>;
export type AssistantVersionsSearch = z.output<typeof assistantVersionsBody>;
