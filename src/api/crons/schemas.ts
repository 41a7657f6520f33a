import { z } from "zod";
import {
  bodyOf,
  cursor,
  jsonObject,
  jsonValue,
  optional,
  page,
  sortOrder,
  storableConfig,
  storableMetadata,
  storableObject,
  storableText,
  uuid,
} from "../../platform/domain/json-schemas.ts";
import { storableFilter } from "../../platform/domain/search-filter.ts";
import { nodeNames, streamModes } from "../runs/schemas.ts";

export const CRON_FIELDS = [
  "cron_id",
  "assistant_id",
  "thread_id",
  "on_run_completed",
  "end_time",
  "schedule",
  "timezone",
  "created_at",
  "updated_at",
  "user_id",
  "payload",
  "next_run_date",
  "metadata",
  "enabled",
  "error",
] as const;

const SORT_FIELDS = [
  "cron_id",
  "assistant_id",
  "thread_id",
  "next_run_date",
  "end_time",
  "created_at",
  "updated_at",
] as const;

const SCHEDULE_CHARACTERS_AT_MOST = 200;
const TIMEZONE_CHARACTERS_AT_MOST = 100;

const schedule = storableText
  .max(SCHEDULE_CHARACTERS_AT_MOST)
  .describe(
    "Five fields (minute, hour, day of month, month, day of week), or a name such as @hourly or @daily.",
  );
const timezone = optional(storableText.max(TIMEZONE_CHARACTERS_AT_MOST)).describe(
  "The IANA time zone of the schedule; UTC by default.",
);
const onRunCompleted = optional(z.enum(["delete", "keep"])).describe(
  "Whether a run's own thread is deleted or kept; 'delete' by default.",
);

const YEAR_1_MS = -62_135_596_800_000;
const END_OF_9999_MS = 253_402_300_799_999;

/** Python's SDK sends a time without an offset if its caller gave none. Such a time is UTC. */
const moment = z.iso
  .datetime({ offset: true, local: true, error: "must be an ISO 8601 time" })
  .transform((text) => new Date(/(z|[+-]\d\d(:?\d\d)?)$/i.test(text) ? text : `${text}Z`))
  // An offset can move a time beyond four digits.
  .refine((time) => time.getTime() >= YEAR_1_MS && time.getTime() <= END_OF_9999_MS, {
    error: "must be a time of the years 1 to 9999",
  });

const runFields = {
  input: jsonValue.describe("The input of the graph."),
  config: optional(storableConfig),
  context: optional(storableObject),
  webhook: optional(storableText.min(1).max(65_536)),
  interrupt_before: optional(nodeNames),
  interrupt_after: optional(nodeNames),
  stream_mode: optional(streamModes),
  stream_subgraphs: optional(z.boolean()),
  stream_resumable: optional(z.boolean()),
  checkpoint_during: optional(z.boolean()),
  durability: optional(z.enum(["sync", "async", "exit"])),
  multitask_strategy: optional(z.enum(["reject", "enqueue", "interrupt", "rollback"])).describe(
    "What happens if the cron's thread is busy; 'enqueue' by default.",
  ),
};
export const RUN_FIELDS = Object.keys(runFields) as readonly (keyof typeof runFields)[];

const metadata = optional(storableMetadata).describe(
  "The cron's metadata. Its runs get the same and `cron_id`.",
);

const creationFields = {
  assistant_id: storableText
    .min(1)
    .describe("An assistant's id, or a graph id for the graph's own assistant."),
  schedule,
  timezone,
  end_time: optional(moment).describe("From this time on no run is created."),
  enabled: optional(z.boolean()).describe("False: no run is created until the cron is enabled."),
  metadata,
  ...runFields,
};

export const cronCreateBody = z
  .object({ ...creationFields, on_run_completed: onRunCompleted })
  .meta({ id: "CronCreate" });

export const threadCronCreateBody = z.object(creationFields).meta({ id: "ThreadCronCreate" });

export type CronCreate = z.output<typeof threadCronCreateBody> &
  Partial<Pick<z.output<typeof cronCreateBody>, "on_run_completed">>;

/** Omitted fields stay unchanged. */
export const cronPatchBody = bodyOf({
  schedule: optional(schedule),
  timezone,
  end_time: moment.nullish(),
  enabled: optional(z.boolean()),
  metadata,
  on_run_completed: onRunCompleted,
  ...runFields,
});
export type CronPatch = z.output<typeof cronPatchBody>;

const filter = {
  assistant_id: optional(storableText).describe(
    "An assistant's id, or a graph id for the graph's own assistant.",
  ),
  thread_id: optional(uuid),
  enabled: optional(z.boolean()),
  metadata: optional(storableFilter).describe("The cron's metadata must contain these."),
};

export const cronSearchBody = bodyOf({
  ...filter,
  ...page,
  cursor,
  sort_by: optional(z.enum(SORT_FIELDS)),
  sort_order: sortOrder,
  select: optional(z.array(z.enum([...CRON_FIELDS, "now"]))).describe(
    "`now` is the time of the database, which decides when crons are due.",
  ),
});
export type CronSearch = z.output<typeof cronSearchBody>;

export const cronCountBody = bodyOf(filter);
export type CronFilter = z.output<typeof cronCountBody>;

export const cronPath = z.object({ cron_id: uuid });
export const threadPath = z.object({ thread_id: uuid });

const time = z.string().meta({ format: "date-time" });

export const cronRecord = z
  .object({
    cron_id: uuid,
    assistant_id: uuid,
    thread_id: uuid.nullable().describe("The thread of the runs; null if each run has its own."),
    on_run_completed: z.enum(["delete", "keep"]).nullable(),
    end_time: time.nullable(),
    schedule: z.string(),
    timezone: z.string().nullable(),
    created_at: time,
    updated_at: time,
    user_id: z.string().nullable(),
    payload: jsonObject.describe("The request of each run."),
    next_run_date: time.nullable().describe("Null if the cron is disabled or has ended."),
    metadata: jsonObject,
    enabled: z.boolean(),
    error: z
      .string()
      .nullable()
      .describe("Why the server disabled the cron, for example because its assistant was deleted."),
  })
  .meta({ id: "Cron" });
export type CronRecord = z.output<typeof cronRecord>;

export const cronExtract = cronRecord.extend({ now: time }).partial().meta({ id: "CronExtract" });
export type CronExtract = z.output<typeof cronExtract>;
