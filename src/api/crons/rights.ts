import { isDeepStrictEqual } from "node:util";
import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import type { Permission, Visibility } from "../../access/visibility.ts";
import type { CronRow } from "../../platform/database/tables.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import type { CreationRights } from "../../engine/queue/sql/create.ts";
import { RUN_FIELDS, type CronCreate, type CronPatch, type CronSearch } from "./schemas.ts";

/** What each run of a cron is to be. */
interface AskedRuns {
  assistantId: string;
  threadId: string | null;
  metadata: JsonObject;
  payload: JsonObject;
}

/** What a body asks of each run. */
export const payloadOf = (body: { [Field in (typeof RUN_FIELDS)[number]]?: unknown }): JsonObject =>
  Object.fromEntries(
    RUN_FIELDS.flatMap((field) => (body[field] === undefined ? [] : [[field, body[field]]])),
  ) as JsonObject;

/** The user who creates a cron, as it shows them; undefined if no user does. */
export const userIdOf = (caller: Caller): string | undefined =>
  caller.kind === "user" ? caller.identity : undefined;

const askedOf = ({ metadata, payload }: Pick<CronRow, "metadata" | "payload">): unknown => [
  metadata,
  JSON.parse(payload),
];

/**
 * Whether the runs of a cron are those of this caller from now on: of a user who changes what they are asked to do, or lets them
 * begin. Otherwise they would do that in the name of the user who made the cron, and be counted as that user's. A key is the
 * operator's own access, and takes nobody's place.
 */
export const takesOver = (
  caller: Caller,
  before: Pick<CronRow, "metadata" | "payload" | "enabled">,
  after: Pick<CronRow, "metadata" | "payload" | "enabled">,
): boolean =>
  caller.kind === "user" &&
  ((after.enabled && !before.enabled) || !isDeepStrictEqual(askedOf(after), askedOf(before)));

/** Asks what a caller may do with crons. What is granted is what is stored, see `Permission`. */
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

  /**
   * Its runs are created for whoever creates it, changes what they do, or enables it (`takesOver`). Answers the metadata of the
   * cron, which its runs get: a handler may have added what belongs to a run's.
   */
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
