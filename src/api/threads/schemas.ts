import { z } from "zod";
import {
  bodyOf,
  channelUpdate,
  checkpointNs,
  cursor,
  goto,
  jsonObject,
  jsonValue,
  nodeName,
  optional,
  page,
  queryBoolean,
  queryInteger,
  queryList,
  sortOrder,
  storableMetadata,
  storableText,
  uuid,
} from "../../platform/domain/json-schemas.ts";
import { searchFilter, storableFilter } from "../../platform/domain/search-filter.ts";
import { TTL_MINUTES_AT_MOST } from "../../graphs/project/expiry.ts";

/** Old SDKs send the minutes alone. */
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

/** `thread_id` is ignored, because the path names the thread. */
const checkpoint = z.object({
  checkpoint_ns: optional(checkpointNs),
  checkpoint_id: optional(uuid),
  checkpoint_map: optional(jsonObject),
});

const command = z.object({
  update: optional(channelUpdate),
  resume: jsonValue,
  goto: optional(goto),
});

const superstepUpdate = z.object({
  values: jsonValue,
  command: optional(command),
  as_node: nodeName.min(1),
});

/** LangGraph applies updates in turn, 5 to 30 ms per superstep. */
const UPDATES_AT_MOST = 500;
export const updatesIn = (supersteps: readonly { updates: readonly unknown[] }[]): number =>
  supersteps.reduce((count, { updates }) => count + updates.length, 0);

export const threadPath = z.object({ thread_id: uuid });
export const checkpointPath = z.object({ thread_id: uuid, checkpoint_id: uuid });

export const threadCreateBody = bodyOf({
  thread_id: optional(uuid),
  metadata: optional(storableMetadata),
  if_exists: optional(z.enum(["raise", "do_nothing"])),
  ttl: optional(ttl),
  supersteps: optional(
    z
      .array(z.object({ updates: z.array(superstepUpdate).min(1) }))
      .refine((supersteps) => updatesIn(supersteps) <= UPDATES_AT_MOST, {
        error: `holds more than ${UPDATES_AT_MOST} updates; send the rest to 'POST /threads/{thread_id}/state'`,
      }),
  ),
});

export const threadPatchBody = bodyOf({ metadata: optional(storableMetadata), ttl: optional(ttl) });

export const threadReadQuery = z.object({ include: queryList });

// Answers are written as text; these schemas only describe them.

const timestamp = z.string().meta({ format: "date-time" });
const interrupt = z
  .object({ id: z.string().nullable().optional(), value: jsonValue })
  .meta({ id: "Interrupt" });

export const threadRecord = z
  .object({
    thread_id: uuid,
    created_at: timestamp,
    updated_at: timestamp,
    state_updated_at: timestamp.describe("When a run or an update last changed the state."),
    metadata: jsonObject,
    config: jsonObject,
    status: z.enum(["idle", "busy", "interrupted", "error"]),
    values: jsonObject
      .nullable()
      .describe("The values of the newest checkpoint; null for a thread that never ran."),
    interrupts: z
      .record(z.string(), z.array(interrupt))
      .describe("The interrupts that wait for an answer, by task."),
    error: jsonObject.optional().describe("The error of the last run, if it failed."),
    ttl: z
      .object({
        strategy: z.enum(["delete", "keep_latest"]),
        ttl_minutes: z.number(),
        expires_at: timestamp
          .optional()
          .describe("Absent after the thread was pruned (`keep_latest`) until its state changes."),
      })
      .optional()
      .describe("Only with include=ttl."),
    extracted: jsonObject.optional().describe("The values at the paths of `extract`."),
  })
  .meta({ id: "Thread" });

const threadField = threadRecord.keyof().exclude(["ttl", "extracted"]);
export type ThreadField = z.output<typeof threadField>;

export const threadExtract = threadRecord.partial();

const IDS_AT_MOST = 1_000;

const filter = {
  metadata: optional(storableFilter),
  values: optional(searchFilter),
  status: optional(z.enum(["idle", "busy", "interrupted", "error"])),
  ids: optional(z.array(uuid).max(IDS_AT_MOST)),
};

export const threadSearchBody = bodyOf({
  ...filter,
  ...page,
  cursor,
  sort_by: optional(z.enum(["thread_id", "status", "created_at", "updated_at", "state_updated_at"])),
  sort_order: sortOrder,
  // The SDK's list has `context`, which is ignored: no thread has one.
  select: optional(z.array(z.enum([...threadField.options, "context"]))),
  extract: optional(z.record(storableText, storableText)),
});

export const threadCountBody = bodyOf(filter);

export const threadPruneBody = z.object({
  thread_ids: z.array(uuid).max(IDS_AT_MOST),
  strategy: optional(z.enum(["delete", "keep_latest"])),
});

/** Fields of a state, or `values.<key>`. Unknown names select nothing: clients can be newer than the server. */
const selectList = optional(z.array(storableText));

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
  as_node: optional(nodeName.min(1)),
});

export const statePatchBody = z.object({ metadata: storableMetadata });

const HISTORY_LIMIT = 10;
const HISTORY_AT_MOST = 1_000;

export const historyQuery = z.object({
  limit: queryInteger(1, HISTORY_AT_MOST).transform((limit) => limit ?? HISTORY_LIMIT),
  before: z.preprocess((value) => (value === "" ? undefined : value), uuid.optional()),
  select: queryList,
});

/** An id, the SDK's `{configurable: {checkpoint_id}}`, or a checkpoint (RemoteGraph, Python). */
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
  metadata: optional(storableFilter),
  checkpoint: optional(checkpoint),
  select: selectList,
});

export const pruneAnswer = z.object({ pruned_count: z.int() });

const bytes = { count: z.int(), bytes: z.int() };
export const storageAnswer = z
  .object({
    thread_id: uuid,
    total_bytes: z.int(),
    checkpoints: z.object(bytes),
    channel_values: z.object({
      ...bytes,
      by_channel: z.record(z.string(), z.object({ versions: z.int(), bytes: z.int() })),
    }),
    pending_writes: z.object(bytes),
  })
  .meta({ id: "ThreadStorage" });

const checkpointAddress = z
  .object({
    thread_id: uuid,
    checkpoint_ns: z.string().describe("Empty in the root graph."),
    checkpoint_id: uuid,
    checkpoint_map: jsonObject.nullable(),
  })
  .meta({ id: "Checkpoint" });

const task = z.object({
  id: z.string(),
  name: z.string(),
  path: z.array(jsonValue),
  error: z.string().nullable(),
  interrupts: z
    .array(interrupt)
    .describe("What the task asked. Answered interrupts stay until all tasks of the step have ended."),
  checkpoint: jsonObject.nullable().describe("The address of the state of the task's subgraph."),
  get state() {
    return stateAnswer.nullable();
  },
  result: jsonValue,
});

export const stateAnswer: z.ZodType = z
  .object({
    values: jsonValue,
    next: z.array(z.string()).describe("The nodes that run next."),
    tasks: z.array(task),
    metadata: jsonObject,
    created_at: timestamp.nullable(),
    checkpoint: checkpointAddress.nullable(),
    parent_checkpoint: checkpointAddress.nullable(),
    interrupts: z
      .array(interrupt)
      .describe("Those of the tasks. In the newest state, only those that wait for an answer."),
  })
  .partial()
  .meta({ id: "ThreadState" });

/** The same address in three forms, for different clients. */
export const stateUpdateAnswer = z
  .object({ checkpoint: checkpointAddress, configurable: checkpointAddress, checkpoint_id: uuid })
  .meta({ id: "ThreadStateUpdate" });

export type ThreadCreate = z.output<typeof threadCreateBody>;
export type ThreadPatch = z.output<typeof threadPatchBody>;
export type ThreadFilter = z.output<typeof threadCountBody>;
export type ThreadSearch = z.output<typeof threadSearchBody>;
export type ThreadPrune = z.output<typeof threadPruneBody>;
export type StateUpdate = z.output<typeof stateUpdateBody>;
export type Superstep = { updates: z.output<typeof superstepUpdate>[] };
export type CommandFields = z.output<typeof command>;
export type UpdatedState = z.output<typeof stateUpdateAnswer>;
