import { z } from "zod";
import { OWN_STREAM_MODES, STREAM_MODES } from "../../engine/events/mode-names.ts";
import {
  bodyOf,
  channelUpdate,
  checkpointNs,
  cursor,
  errorAnswer,
  goto,
  jsonObject,
  jsonValue,
  noKnownMode,
  optional,
  page,
  queryBoolean,
  queryInteger,
  queryList,
  queryTexts,
  sortOrder,
  storableConfig,
  storableMetadata,
  storableObject,
  storableText,
  uuid,
  withKnownMode,
} from "../../platform/domain/json-schemas.ts";
import { storableFilter } from "../../platform/domain/search-filter.ts";

// Parts of the descriptions of routes.

export const tags = ["Runs"];
export const threadlessTags = ["Threadless runs"];
export const refusals = { 404: errorAnswer, 422: errorAnswer };
/** For routes that an unfinished run can block. */
export const conflicts = { ...refusals, 409: errorAnswer };
export const values = jsonValue.describe(
  "The graph's final values; `__error__` instead if the run failed, and also `__interrupt__` if it was interrupted.",
);
export const events = z.string().describe("Server-sent events; the first one is `metadata`.");

/** Each namespace is compared with the name of each event. */
const NAMESPACES_AT_MOST = 100;

/** `*` means all nodes. */
export const nodeNames = z.union([z.literal("*"), z.array(storableText)]);

const command = z.object({
  update: optional(channelUpdate),
  resume: jsonValue.optional(),
  goto: optional(goto),
});

const checkpoint = z.object({
  thread_id: optional(storableText),
  checkpoint_ns: optional(checkpointNs),
  checkpoint_id: optional(storableText),
  checkpoint_map: optional(jsonObject),
});

const langsmithTracer = z.object({
  project_name: optional(storableText.min(1).max(1_000)),
  // LangSmith would refuse all traces of a batch.
  example_id: optional(uuid),
});

const givenModes = z.union([storableText, z.array(storableText)]).nullish();
const MODES_NOTE = "Unknown modes beside known ones emit nothing.";
export const streamModes = withKnownMode(givenModes, STREAM_MODES).describe(MODES_NOTE);
/** Checks in the transformation: a refinement would cost each run five more calls. */
const streamMode = givenModes
  .transform((given, context) => {
    const modes = given == null ? ["values"] : typeof given === "string" ? [given] : given;
    let isKnown = modes.length === 0;
    for (const mode of modes) isKnown ||= STREAM_MODES.includes(mode) || OWN_STREAM_MODES.includes(mode);
    if (!isKnown) context.addIssue(noKnownMode(STREAM_MODES));
    return modes;
  })
  .describe(MODES_NOTE);

const commonFields = {
  assistant_id: storableText
    .min(1)
    .describe("An assistant's id, or a graph id for the graph's own assistant."),
  input: jsonValue.optional().describe("The input of the graph."),
  command: optional(command).describe("A command for the graph. The graph then ignores `input`."),
  metadata: optional(storableMetadata),
  config: optional(storableConfig),
  context: optional(storableObject),
  interrupt_before: optional(nodeNames),
  interrupt_after: optional(nodeNames),
  stream_mode: streamMode,
  stream_subgraphs: optional(z.boolean()).transform((value) => value ?? false),
  stream_resumable: optional(z.boolean()).transform((value) => value ?? false),
  feedback_keys: optional(z.array(storableText)),
  strict_resume: optional(z.boolean()).describe(
    "Whether an answer to an interrupt that no longer waits fails and leaves the thread unchanged.",
  ),
  after_seconds: optional(z.number().min(0).max(31_536_000)),
  checkpoint_during: optional(z.boolean()),
  durability: optional(z.enum(["sync", "async", "exit"])),
  on_disconnect: optional(z.enum(["cancel", "continue"])).transform((value) => value ?? "continue"),
  webhook: optional(storableText.min(1).max(65_536)).describe(
    "An http or https address, or a path of this server. The server posts the run's record and values to it after the run.",
  ),
  langsmith_tracer: optional(langsmithTracer).describe(
    "A project of LangSmith that also gets the run's trace, and the example that the run belongs to. Ignored while tracing is off.",
  ),
};

const threadFields = {
  checkpoint: optional(checkpoint),
  checkpoint_id: optional(storableText),
  multitask_strategy: optional(z.enum(["reject", "enqueue", "interrupt", "rollback"])).transform(
    (value) => value ?? "enqueue",
  ),
  if_not_exists: optional(z.enum(["create", "reject"])).transform((value) => value ?? "reject"),
};

export const runBody = z.object({ ...commonFields, ...threadFields }).meta({ id: "RunCreateStateful" });
export type RunBody = z.output<typeof runBody>;

export const threadlessRunBody = z
  .object({
    ...commonFields,
    ...threadFields,
    thread_id: optional(uuid).describe(
      "The thread of the run, which is kept. Without it the run gets its own thread.",
    ),
    on_completion: optional(z.enum(["delete", "keep"]))
      .transform((value) => value ?? "delete")
      .describe("Whether the run's own thread is deleted or kept."),
  })
  .meta({ id: "RunCreateStateless" });
export type ThreadlessRunBody = z.output<typeof threadlessRunBody>;

export const runBatchBody = z.array(threadlessRunBody).min(1).max(1_000);

export const threadPath = z.object({ thread_id: uuid });
export const runPath = z.object({ thread_id: uuid, run_id: uuid });
export const bareRunPath = z.object({ run_id: uuid });

export const runStatus = z.enum(["pending", "running", "error", "success", "timeout", "interrupted"]);

const summaryFields = {
  run_id: uuid,
  thread_id: uuid,
  assistant_id: uuid,
  graph_id: z.string(),
  created_at: z.string(),
  updated_at: z.string(),
  run_started_at: z.string().nullable().describe("When the first attempt began."),
  run_ended_at: z.string().nullable(),
  available_at: z.string().describe("The run waits at least until this time, which `after_seconds` sets."),
  attempts: z.int().nonnegative().describe("The number of attempts that have begun."),
  lost_attempts: z
    .int()
    .nonnegative()
    .describe("Attempts that ended with their server or graph process; each was followed by a new attempt."),
  status: runStatus,
  cancel_reason: z
    .string()
    .nullable()
    .describe("Why the run was cancelled: requested, taken, replaced or disconnected, and a sentence."),
  error: z
    .looseObject({ error: z.string().describe("The class of the error."), message: z.string() })
    .nullable()
    .describe("Why the run failed."),
  metadata: jsonObject,
  multitask_strategy: z.enum(["reject", "enqueue", "interrupt", "rollback"]),
};

export const runRecord = z.object({ ...summaryFields, kwargs: jsonObject }).meta({ id: "Run" });
export type RunRecord = z.output<typeof runRecord>;

const runSummary = z.object(summaryFields);
export const runExtract = runSummary.partial().meta({ id: "RunExtract" });
export type RunSummary = z.output<typeof runSummary>;

const END_OF_9999_MS = 253_402_300_799_999;
/** The times that PostgreSQL and the ids of runs can hold. */
const moment = z.iso
  .datetime({ offset: true, error: "must be an ISO 8601 time with its offset from UTC" })
  .transform((text) => new Date(Math.min(END_OF_9999_MS, Math.max(0, Date.parse(text)))));

export const runSearchBody = bodyOf({
  run_id: optional(uuid).describe("Finds a run without its thread."),
  status: optional(runStatus),
  graph_id: optional(storableText),
  assistant_id: optional(storableText).describe(
    "An assistant's id, or a graph id for the graph's own assistant.",
  ),
  thread_id: optional(uuid),
  metadata: optional(storableFilter).describe("The run's metadata must contain these."),
  created_after: optional(moment).describe("Runs that were created at this time or later."),
  created_before: optional(moment).describe("Runs that were created before this time."),
  ...page,
  cursor,
  sort_by: optional(z.literal("created_at")),
  sort_order: sortOrder,
  select: optional(z.array(z.enum(Object.keys(summaryFields) as (keyof typeof summaryFields)[]))),
});
export type RunSearch = z.output<typeof runSearchBody>;

export const emptyIsAbsent = <Schema extends z.ZodType>(schema: Schema) =>
  z.preprocess((value) => (value === "" ? undefined : value), schema.optional());

export const listQuery = z.object({
  limit: queryInteger(1, 1_000),
  offset: queryInteger(0, 2_147_483_647),
  cursor: emptyIsAbsent(cursor),
  status: emptyIsAbsent(runStatus),
  select: queryList,
});

export const cancelManyQuery = z.object({ action: emptyIsAbsent(z.enum(["interrupt", "rollback"])) });
export const cancelQuery = cancelManyQuery.extend({
  wait: queryBoolean,
  reason: emptyIsAbsent(z.literal("taken")).describe(
    "taken: another run has taken over the run's input. The run's 'cancel_reason' then says so.",
  ),
});

export const cancelManyBody = z.object({
  status: optional(z.enum(["pending", "running", "all"])),
  thread_id: optional(uuid),
  run_ids: optional(z.array(uuid).max(1_000)),
});

const namespace = queryTexts(NAMESPACES_AT_MOST).describe(
  "Only events of exactly these namespaces: '' is the root graph, 'node' or 'node:task' a subgraph.",
);
export const streamQuery = z.object({ namespace });

export const joinStreamHeaders = z.looseObject({
  "last-event-id": z
    .string()
    .optional()
    .describe("The last event that the client has received; -1 for all events."),
});

export const joinQuery = z.object({ cancel_on_disconnect: queryBoolean });
export const joinStreamQuery = z.object({
  cancel_on_disconnect: queryBoolean,
  stream_mode: queryList,
  namespace,
  last_event_id: queryInteger(-1, 999_999_999_999_999).describe(
    "Used if the request has no header Last-Event-ID. The header Location of a stream contains it.",
  ),
  checkpoint_id: emptyIsAbsent(uuid).describe(
    "The checkpoint that the client shows: the server sends only the events behind it, or all events if the run has not sent it. Used without an event id or with -1.",
  ),
});
