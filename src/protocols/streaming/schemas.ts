import { z } from "zod";
import {
  checkpointNs,
  goto,
  jsonObject,
  jsonValue,
  optional,
  queryInteger,
  queryList,
  storableText,
  uuid,
  withKnownMode,
} from "../../platform/domain/json-schemas.ts";

/** See `@langchain/protocol`. */

export const threadPath = z.object({ thread_id: uuid });

const name = z.string().max(1_000);
const CHANNELS_AT_MOST = 100;
const NAMESPACES_AT_MOST = 1_000;
const SEGMENTS_AT_MOST = 100;

const namespace = z.array(name).max(SEGMENTS_AT_MOST);

export const eventStreamBody = z
  .object({
    channels: z
      .array(name)
      .min(1)
      .max(CHANNELS_AT_MOST)
      .describe("values, messages, lifecycle, custom:NAME, …"),
    namespaces: optional(z.array(namespace).max(NAMESPACES_AT_MOST)).describe(
      "Prefixes of namespaces; a segment without ':' matches all executions of that name. By default all namespaces.",
    ),
    depth: optional(z.int().min(0)).describe("How many levels below a prefix."),
    since: optional(z.int().min(0).max(Number.MAX_SAFE_INTEGER)).describe(
      "The 'seq' of the last event that the client has received.",
    ),
  })
  .meta({ id: "EventStreamRequest" });
export type EventStream = z.output<typeof eventStreamBody>;

export const commandEnvelope = z
  .object({
    id: z.int(),
    method: z.string().max(1_000),
    params: optional(jsonObject).transform((params) => params ?? {}),
  })
  .meta({ id: "Command" });
export type CommandEnvelope = z.output<typeof commandEnvelope>;

const answer = { interrupt_id: storableText.min(1), namespace: optional(namespace), response: jsonValue };

/** One answer or several; other fields go to the run. */
export const respondParams = z.union([
  z.object({ responses: z.array(z.object(answer)).min(1).max(1_000) }),
  z.object(answer).transform((one) => ({ responses: [one] })),
]);

export const respondUpdate = z.object({ update: optional(jsonObject), goto: optional(goto) });

export const forkParams = z.object({
  checkpoint_id: uuid,
  input: jsonValue,
  config: optional(jsonObject),
});

export const treeParams = z.object({ run_id: optional(uuid) });

const path = optional(namespace)
  .transform((segments) => (segments ?? []).join("|"))
  .pipe(checkpointNs);

export const stateParams = z.object({
  namespace: path,
  keys: optional(z.array(storableText.max(1_000)).max(1_000)),
});

const CHECKPOINTS = 10;
export const listCheckpointsParams = z.object({
  namespace: path,
  limit: optional(z.int().min(1).max(1_000)).transform((limit) => limit ?? CHECKPOINTS),
  before: optional(uuid),
});

export const unsubscribeParams = z.object({ subscription_id: name });

const ERROR_CODES = [
  "invalid_argument",
  "unknown_command",
  "unknown_error",
  "no_such_run",
  "no_such_subscription",
  "no_such_namespace",
  "no_such_interrupt",
  "no_such_checkpoint",
  "permission_denied",
  "not_supported",
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

const meta = z.object({ thread_id: uuid, applied_through_seq: z.int().optional() });

/** Always has HTTP status 200. */
export const commandAnswer = z
  .discriminatedUnion("type", [
    z.object({ type: z.literal("success"), id: z.int(), result: jsonObject, meta: meta.optional() }),
    z.object({ type: z.literal("error"), id: z.int(), error: z.enum(ERROR_CODES), message: z.string() }),
  ])
  .meta({ id: "CommandResponse" });
export type CommandAnswer = z.output<typeof commandAnswer>;

/** See service.ts. */
export const THREAD_STREAM_MODES = ["run_modes", "lifecycle", "state_update"] as const;
export type ThreadStreamMode = (typeof THREAD_STREAM_MODES)[number];

const modes = withKnownMode(queryList, THREAD_STREAM_MODES).describe(
  "run_modes (all events of the runs; the default), lifecycle (their beginnings and ends), state_update (updates of the state). Other modes beside them send nothing.",
);

/** The contract has `stream_modes`; clients send `stream_mode`. */
export const threadStreamQuery = z.object({
  stream_modes: modes,
  stream_mode: modes,
  last_event_id: queryInteger(0, Number.MAX_SAFE_INTEGER).describe(
    "Used if the request has no header Last-Event-ID. The header Location of a stream contains it.",
  ),
});

export const threadStreamHeaders = z.looseObject({
  "last-event-id": z
    .string()
    .optional()
    .describe("The last event that the client has received; - or -1 for all kept events."),
});
