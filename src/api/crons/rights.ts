import { isDeepStrictEqual } from "node:util";
import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import type { Permission, Visibility } from "../../access/visibility.ts";
import type { CronRow } from "../../platform/database/tables.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import type { CreationRights } from "../../engine/queue/sql/create.ts";
import { RUN_FIELDS, type CronCreate, type CronPatch, type CronSearch } from "./schemas.ts";

interface AskedRuns {
  assistantId: string;
  threadId: string | null;
  metadata: JsonObject;
  payload: JsonObject;
}

export const payloadOf = (body: { [Field in (typeof RUN_FIELDS)[number]]?: unknown }): JsonObject =>
  Object.fromEntries(
    RUN_FIELDS.flatMap((field) => (body[field] === undefined ? [] : [[field, body[field]]])),
  ) as JsonObject;

/** Undefined for an API key. */
export const userIdOf = (caller: Caller): string | undefined =>
  caller.kind === "user" ? caller.identity : undefined;

const askedOf = ({ metadata, payload }: Pick<CronRow, "metadata" | "payload">): unknown => [
  metadata,
  JSON.parse(payload),
];

/**
 * A user who changes or enables the runs becomes their user; otherwise they would act and count as the creator's. An
 * API key belongs to the operator and replaces no user.
 */
export const takesOver = (
  caller: Caller,
  before: Pick<CronRow, "metadata" | "payload" | "enabled">,
  after: Pick<CronRow, "metadata" | "payload" | "enabled">,
): boolean =>
  caller.kind === "user" &&
  ((after.enabled && !before.enabled) || !isDeepStrictEqual(askedOf(after), askedOf(before)));

export const createCronRights = (authorize: Authorize) => ({
  create: async (
    caller: Caller,
    body: CronCreate,
    { cronId, threadId }: { cronId: string; threadId: string | null },
  ): Promise<Permission<"crons", "create">> =>
    await authorize(caller, "crons", "create", {
      ...{ cron_id: cronId, schedule: body.schedule, thread_id: threadId ?? undefined },
      ...{ user_id: userIdOf(caller), end_time: body.end_time?.toISOString() },
      ...{ metadata: body.metadata ?? {}, payload: payloadOf(body) },
    }),

  update: async (caller: Caller, cronId: string, body: CronPatch): Promise<Permission<"crons", "update">> =>
    await authorize(caller, "crons", "update", {
      ...{ cron_id: cronId, schedule: body.schedule },
      ...{ metadata: body.metadata ?? {}, payload: payloadOf(body) },
    }),

  search: async (
    caller: Caller,
    { assistant_id, thread_id, metadata, limit, offset }: Partial<CronSearch>,
  ): Promise<Visibility<"crons">> =>
    await authorize(caller, "crons", "search", { assistant_id, thread_id, metadata, limit, offset }),

  /** Returns the runs' metadata, which a handler may have extended. */
  runs: async (
    caller: Caller,
    { assistantId, threadId, metadata, payload }: AskedRuns,
  ): Promise<{ rights: CreationRights; metadata: JsonObject }> => {
    const threads = await authorize(caller, "threads", "create_run", {
      ...{ thread_id: threadId ?? undefined, assistant_id: assistantId, run_id: newId() },
      ...{ status: "pending", metadata, kwargs: payload },
    });
    const assistants = await authorize(caller, "assistants", "read", { assistant_id: assistantId });
    return { rights: { threads, assistants }, metadata: threads.value.metadata };
  },
});
