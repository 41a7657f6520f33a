import { z } from "zod";
import {
  bodyOf,
  jsonObject,
  jsonValue,
  optional,
  page,
  queryBoolean,
  queryInteger,
  queryList,
  sortOrder,
  storableObject,
  storableText,
  uuid,
} from "../lib/json-schemas.ts";

export const THREAD_FIELDS = [
  "thread_id",
  "created_at",
  "updated_at",
  "state_updated_at",
  "metadata",
  "config",
  "status",
  "values",
  "interrupts",
  "error",
] as const;
export type ThreadField = (typeof THREAD_FIELDS)[number];

/** Lets a thread live for a hundred years: a longer one overflows no timestamp but means nothing. */
const TTL_MINUTES_AT_MOST = 52_560_000;

/** Minutes alone are what old SDKs send. */
const ttl = z
  .union([
    z.number().positive().max(TTL_MINUTES_AT_MOST),
    z.object({
      ttl: z.number().positive().max(TTL_MINUTES_AT_MOST),
      strategy: optional(z.enum(["delete", "keep_latest"])),
    }),
  ])
  .transform((value) =>
    typeof value === "number"
      ? { minutes: value, strategy: "delete" as const }
      : { minutes: value.ttl, strategy: value.strategy ?? ("delete" as const) },
  );

/**
 * The namespace of a subgraph, segments joined by `|`. `@langchain/react` joins them with NUL, which no
 * `text` of PostgreSQL can hold: read as the separator that it stands for.
 */
const checkpointNamespace = z
  .string()
  .transform((namespace) => namespace.replaceAll("\0", "|"))
  .pipe(storableText);

/** Where in a thread; its `thread_id` is ignored, the path names the thread. */
const checkpoint = z.object({
  checkpoint_ns: optional(checkpointNamespace),
  checkpoint_id: optional(uuid),
  checkpoint_map: optional(jsonObject),
});

/** A node's input to send, as `goto` carries it. */
const send = z.object({ node: z.string(), input: jsonValue });
const command = z.object({
  update: optional(z.union([jsonObject, z.array(jsonValue)])),
  resume: jsonValue,
  goto: optional(z.union([z.string(), send, z.array(z.union([z.string(), send]))])),
});

const superstepUpdate = z.object({
  values: jsonValue,
  command: optional(command),
  as_node: z.string().min(1),
});

/** Supersteps per request: each one is a checkpoint, written in turn. */
const SUPERSTEPS_AT_MOST = 10_000;

// Ids go out in small letters, however they came.
const pathId = uuid.toLowerCase();
export const threadPath = z.object({ thread_id: pathId });
export const checkpointPath = z.object({ thread_id: pathId, checkpoint_id: pathId });

export const threadCreateBody = bodyOf({
  thread_id: optional(uuid),
  metadata: optional(storableObject),
  if_exists: optional(z.enum(["raise", "do_nothing"])),
  ttl: optional(ttl),
  supersteps: optional(
    z.array(z.object({ updates: z.array(superstepUpdate).min(1) })).max(SUPERSTEPS_AT_MOST),
  ),
});

export const threadPatchBody = bodyOf({ metadata: optional(storableObject), ttl: optional(ttl) });

export const threadReadQuery = z.object({ include: queryList });

/** Ids per request: what a page of a search can name. */
const IDS_AT_MOST = 1_000;

const filter = {
  metadata: optional(storableObject),
  values: optional(jsonObject),
  status: optional(z.enum(["idle", "busy", "interrupted", "error"])),
};

export const threadSearchBody = bodyOf({
  ...filter,
  ...page,
  ids: optional(z.array(uuid).max(IDS_AT_MOST)),
  sort_by: optional(z.enum(["thread_id", "status", "created_at", "updated_at", "state_updated_at"])),
  sort_order: sortOrder,
  // `context` is in the SDK's list of fields, though no thread has one: accepted, and nothing comes of it.
  select: optional(z.array(z.enum([...THREAD_FIELDS, "context"]))),
  extract: optional(z.record(z.string(), z.string())),
});

export const threadCountBody = bodyOf(filter);

export const threadPruneBody = z.object({
  thread_ids: z.array(uuid).max(IDS_AT_MOST),
  strategy: optional(z.enum(["delete", "keep_latest"])),
});

/** Names of fields of a state, or `values.<key>`. Unknown names select nothing: clients run ahead of servers. */
const selectList = optional(z.array(z.string()));

export const stateQuery = z.object({ subgraphs: queryBoolean, select: queryList });

export const stateAtCheckpointBody = z.object({
  checkpoint: optional(checkpoint),
  subgraphs: optional(z.union([z.boolean(), queryBoolean])),
  select: selectList,
});

export const stateUpdateBody = z.object({
  values: jsonValue,
  checkpoint: optional(checkpoint),
  checkpoint_id: optional(uuid),
  as_node: optional(z.string().min(1)),
});

export const statePatchBody = z.object({ metadata: storableObject });

const HISTORY_LIMIT = 10;
const HISTORY_AT_MOST = 1_000;

export const historyQuery = z.object({
  limit: queryInteger(1, HISTORY_AT_MOST).transform((limit) => limit ?? HISTORY_LIMIT),
  before: z.preprocess((value) => (value === "" ? undefined : value), uuid.optional()),
});

/** Three ways to say it: an id, the SDK's `{configurable: {checkpoint_id}}`, a checkpoint (RemoteGraph, Python). */
const before = z
  .union([uuid, z.object({ configurable: z.object({ checkpoint_id: optional(uuid) }) }), checkpoint])
  .transform((value) =>
    typeof value === "string"
      ? value
      : "configurable" in value
        ? value.configurable.checkpoint_id
        : value.checkpoint_id,
  );

export const historyBody = bodyOf({
  limit: optional(z.int().min(1).max(HISTORY_AT_MOST)).transform((limit) => limit ?? HISTORY_LIMIT),
  before: optional(before),
  metadata: optional(storableObject),
  checkpoint: optional(checkpoint),
  select: selectList,
});

export type ThreadTtl = z.output<typeof ttl>;
export type ThreadCreate = z.output<typeof threadCreateBody>;
export type ThreadPatch = z.output<typeof threadPatchBody>;
export type ThreadFilter = z.output<typeof threadCountBody>;
export type ThreadSearch = z.output<typeof threadSearchBody>;
export type ThreadPrune = z.output<typeof threadPruneBody>;
export type StateUpdate = z.output<typeof stateUpdateBody>;
export type Superstep = { updates: z.output<typeof superstepUpdate>[] };
export type CommandFields = z.output<typeof command>;
