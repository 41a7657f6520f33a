import { z } from "zod";
import {
  storableConfig,
  storableObject,
  storableText,
  storableValue,
} from "../platform/domain/json-schemas.ts";
import type { JsonObject } from "../platform/lib/json.ts";
import { TTL_MINUTES_AT_MOST } from "../graphs/project/expiry.ts";

/**
 * The `value` of each event for handlers, as in the SDK's `AuthEventValueMap`. Events that store metadata always have
 * `metadata`.
 */
interface EventValues {
  "threads:create": {
    thread_id?: string | undefined;
    metadata: JsonObject;
    if_exists?: "raise" | "do_nothing" | undefined;
    ttl?: TtlValue | undefined;
  };
  "threads:read": { thread_id?: string | undefined; run_id?: string | undefined };
  "threads:update": {
    thread_id?: string | undefined;
    metadata: JsonObject;
    action?: "interrupt" | "rollback" | undefined;
    ttl?: TtlValue | undefined;
  };
  "threads:delete": {
    thread_id?: string | undefined;
    thread_ids?: readonly string[] | undefined;
    run_id?: string | undefined;
  };
  "threads:search": Search & {
    thread_id?: string | undefined;
    ids?: readonly string[] | undefined;
    status?: string | undefined;
    values?: unknown;
  };
  "threads:create_run": {
    thread_id?: string | undefined;
    assistant_id: string;
    run_id: string;
    status: "pending";
    metadata: JsonObject;
    multitask_strategy?: string | undefined;
    if_not_exists?: "reject" | "create" | undefined;
    after_seconds?: number | undefined;
    /** Input, command, config, context and other fields of the run. */
    kwargs: Record<string, unknown>;
  };
  "assistants:create": AssistantFields & {
    assistant_id?: string | undefined;
    graph_id: string;
    if_exists?: "raise" | "do_nothing" | undefined;
  };
  "assistants:read": { assistant_id: string; metadata?: unknown };
  "assistants:update": AssistantFields & {
    assistant_id: string;
    graph_id?: string | undefined;
    version?: number | undefined;
  };
  "assistants:delete": { assistant_id: string };
  "assistants:search": Search & { graph_id?: string | undefined };
  "crons:create": CronFields & {
    cron_id: string;
    schedule: string;
    thread_id?: string | undefined;
    user_id?: string | undefined;
    end_time?: string | undefined;
  };
  "crons:read": { cron_id: string };
  "crons:update": CronFields & { cron_id: string; schedule?: string | undefined };
  "crons:delete": { cron_id: string };
  "crons:search": Search & { assistant_id?: string | undefined; thread_id?: string | undefined };
  "store:put": { namespace: string[]; key: string; value: JsonObject };
  "store:get": { namespace: string[]; key: string };
  "store:search": Page & { namespace: string[]; filter?: unknown; query?: string | undefined };
  /** `namespace`: the prefix of the namespaces. */
  "store:list_namespaces": Page & {
    namespace: string[];
    suffix?: string[] | undefined;
    max_depth?: number | undefined;
  };
  "store:delete": { namespace: string[]; key: string };
}

interface Page {
  limit?: number | undefined;
  offset?: number | undefined;
}

interface Search extends Page {
  metadata?: unknown;
}

/** A thread's expiry as clients send it; `ttl` in minutes. The SDK's types lack it. */
export interface TtlValue {
  strategy: "delete" | "keep_latest";
  ttl: number;
}

interface AssistantFields {
  metadata: JsonObject;
  config?: JsonObject | undefined;
  context?: JsonObject | undefined;
  name?: string | undefined;
  description?: string | undefined;
}

interface CronFields {
  /** Also given to the cron's runs. */
  metadata: JsonObject;
  /** The fields of each run. */
  payload: Record<string, unknown>;
}

export type AuthEvent = keyof EventValues;
export type ValueOf<R extends Resource, A extends Actions[R]> = `${R}:${A}` extends AuthEvent
  ? EventValues[`${R}:${A}`]
  : never;

const RECORD_ACTIONS = ["create", "read", "update", "delete", "search"] as const;
const STORE_ACTIONS = ["put", "get", "search", "list_namespaces", "delete"] as const;

/** In the order of log messages and documents. */
export const EVENTS: readonly AuthEvent[] = [
  ...[...RECORD_ACTIONS, "create_run" as const].map((action) => `threads:${action}` as const),
  ...RECORD_ACTIONS.map((action) => `assistants:${action}` as const),
  ...RECORD_ACTIONS.map((action) => `crons:${action}` as const),
  ...STORE_ACTIONS.map((action) => `store:${action}` as const),
];

const fields = {
  metadata: storableObject,
  config: storableConfig.optional(),
  context: storableObject.optional(),
  name: storableText.optional(),
  description: storableText.optional(),
};
const ttl = z.object({
  strategy: z.enum(["delete", "keep_latest"]),
  ttl: z.number().positive().max(TTL_MINUTES_AT_MOST),
});
const thread = z.looseObject({ metadata: fields.metadata, ttl: ttl.optional() });
const assistant = z.looseObject(fields);
const runFields = z.looseObject({ config: fields.config.nullish(), context: fields.context.nullish() });
const cron = z.looseObject({ metadata: fields.metadata, payload: runFields });
const labels = z.array(z.string());
const item = z.looseObject({ namespace: labels, key: z.string() });

/**
 * A handler may change `value`. These schemas check what is then stored or searched for; services check the details.
 */
export const RETURNED: Partial<Record<AuthEvent, z.ZodType>> = {
  "threads:create": thread,
  "threads:update": thread,
  "threads:create_run": z.looseObject({
    metadata: fields.metadata,
    kwargs: runFields,
  }),
  "assistants:create": assistant,
  "assistants:update": assistant,
  "crons:create": cron,
  "crons:update": cron,
  "store:put": z.looseObject({ namespace: labels, key: z.string(), value: storableValue }),
  "store:get": item,
  "store:delete": item,
  "store:search": z.looseObject({ namespace: labels }),
  "store:list_namespaces": z.looseObject({ namespace: labels, suffix: labels.optional() }),
};

/**
 * The events of LangGraph's `Auth`. Reading, joining or streaming a run is `read` of its thread, cancelling `update`,
 * deleting `delete`, and creating `create_run` plus `read` of the assistant, also for crons.
 *
 * Read filters also apply to `update`, `create` with `do_nothing` and `create_run`, because they return stored data.
 */
export interface Actions {
  assistants: (typeof RECORD_ACTIONS)[number];
  threads: (typeof RECORD_ACTIONS)[number] | "create_run";
  crons: (typeof RECORD_ACTIONS)[number];
  store: (typeof STORE_ACTIONS)[number];
}

export type Resource = keyof Actions;
