import { isDeepStrictEqual } from "node:util";
import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import type { Visibility } from "../../access/visibility.ts";
import type { CronRow } from "../../platform/database/tables.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import type { CreationRights } from "../../engine/queue/sql/create.ts";
import {
  CRON_FIELDS,
  RUN_FIELDS,
  type CronCreate,
  type CronExtract,
  type CronFilter,
  type CronPatch,
  type CronRecord,
  type CronSearch,
} from "./schemas.ts";
import type { Database } from "../../platform/database/database.ts";
import { MERGED_BYTES_AT_MOST, metadataTooLarge } from "../../platform/database/merging.ts";
import { assistantIdOf } from "../../platform/domain/assistant-ids.ts";
import {
  assistantNotFound,
  cronNotFound,
  invalid,
  sqlState,
  threadNotFound,
  tooManyCrons,
} from "../../platform/domain/errors.ts";
import { assertRecursionLimit } from "../../platform/domain/recursion-limit.ts";
import { totalOf, type Page } from "../../http/pagination.ts";
import { countedAs, isUser } from "../../engine/queue/counted-as.ts";
import { storeOnce } from "../runs/creation/creation.ts";
import { authUserOf } from "../runs/creation/requests.ts";
import {
  toCron,
  toExtract,
  type CronFields,
  type CronRepository,
  type CronSearcher,
  type CronUser,
  type Surroundings,
} from "./repository.ts";
import { readSchedule } from "./schedule.ts";

interface AskedRuns {
  assistantId: string;
  threadId: string | null;
  metadata: JsonObject;
  payload: JsonObject;
}

/** Drops other fields: also those that a handler added. */
const payloadOf = (body: { [Field in (typeof RUN_FIELDS)[number]]?: unknown }): JsonObject =>
  Object.fromEntries(
    RUN_FIELDS.flatMap((field) => (body[field] === undefined ? [] : [[field, body[field]]])),
  ) as JsonObject;

/** Undefined for an API key. */
const userIdOf = (caller: Caller): string | undefined =>
  caller.kind === "user" ? caller.identity : undefined;

const askedOf = ({ metadata, payload }: Pick<CronRow, "metadata" | "payload">): unknown => [
  metadata,
  JSON.parse(payload),
];

/**
 * A user who changes or enables the runs becomes their user; otherwise they would act and count as the creator's. An
 * API key belongs to the operator and replaces no user.
 */
const takesOver = (
  caller: Caller,
  before: Pick<CronRow, "metadata" | "payload" | "enabled">,
  after: Pick<CronRow, "metadata" | "payload" | "enabled">,
): boolean =>
  caller.kind === "user" &&
  ((after.enabled && !before.enabled) || !isDeepStrictEqual(askedOf(after), askedOf(before)));

const createCronRights = (authorize: Authorize) => ({
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

interface CronServiceParts {
  database: Database;
  authorize: Authorize;
  repository: CronRepository;
  searcher: CronSearcher;
  recursionLimitMax: number;
  /** 0: no limit. */
  cronsPerCaller: number;
  keyFactor: number;
  /** Throws `invalid` for a forbidden webhook. */
  checkWebhook(webhook: string | undefined): void;
  onChanged: () => void;
}

const FOREIGN_KEY_VIOLATION = "23503";

type Timing = Pick<CronRow, "schedule" | "timezone" | "end_time" | "enabled" | "next_run_date">;

/** A due time that is not fired yet stays, unless the schedule changes. Throws `invalid`. */
const nextOf = (now: Date, timing: Timing, before?: Timing): Date | null => {
  const schedule = readSchedule(timing.schedule, timing.timezone);
  const isSame = before?.schedule === timing.schedule && before.timezone === timing.timezone;
  const next = (isSame ? before.next_run_date : undefined) ?? schedule.next(now);
  if (next === undefined) throw invalid("'schedule': is never due.");
  if (!timing.enabled) return null;
  return timing.end_time !== null && next >= timing.end_time ? null : next;
};

/** Another user may have recreated the thread or assistant. Such a cron can be disabled but not changed. */
const assertGoesOn = (
  cron: Pick<CronRow, "assistant_id" | "thread_id">,
  { assistantExists, threadExists }: Surroundings,
): void => {
  if (cron.thread_id !== null && !threadExists) throw threadNotFound(cron.thread_id);
  if (!assistantExists) throw assistantNotFound(cron.assistant_id);
};

const runsAs = ({ encryption }: Database, caller: Caller): CronUser => ({
  auth_user: authUserOf(caller),
  caller: countedAs(encryption, caller),
});

/** Does not count creations at the same time. */
const assertRoom = async (
  { repository, cronsPerCaller, keyFactor }: CronServiceParts,
  { caller }: CronUser,
): Promise<void> => {
  if (caller === null || cronsPerCaller === 0) return;
  const atMost = cronsPerCaller * (isUser(caller) ? 1 : keyFactor);
  if ((await repository.countOf(caller, atMost)) >= atMost) throw tooManyCrons(atMost);
};

/** A hidden cron is treated as missing. */
export const createCronService = (parts: CronServiceParts) => {
  const { database, authorize, repository, searcher, recursionLimitMax, checkWebhook, onChanged } = parts;
  const may = createCronRights(authorize);

  return {
    /** Throws `assistantNotFound`, `threadNotFound`, `invalid`. */
    async create(caller: Caller, body: CronCreate, threadId: string | null): Promise<CronRecord> {
      const assistantId = assistantIdOf(body.assistant_id);
      const cronId = newId();
      const visibility = await authorize(caller, "crons", "create", {
        ...{ cron_id: cronId, schedule: body.schedule, thread_id: threadId ?? undefined },
        ...{ user_id: userIdOf(caller), end_time: body.end_time?.toISOString() },
        ...{ metadata: body.metadata ?? {}, payload: payloadOf(body) },
      });
      const payload = payloadOf(visibility.value.payload);
      const asked = { assistantId, threadId, metadata: visibility.value.metadata, payload };
      const { rights, metadata } = await may.runs(caller, asked);
      assertRecursionLimit(payload.config as JsonObject | undefined, recursionLimitMax);
      checkWebhook(payload.webhook as string | undefined);
      const timing: Timing = {
        schedule: body.schedule,
        timezone: body.timezone ?? null,
        end_time: body.end_time ?? null,
        enabled: body.enabled ?? true,
        next_run_date: null,
      };
      readSchedule(timing.schedule, timing.timezone);
      const user = runsAs(database, caller);
      await assertRoom(parts, user);
      const row = await storeOnce(
        () => repository.find(visibility, cronId),
        async () => {
          const { now, assistantExists, threadExists } = await repository.surroundings(rights, {
            assistantId,
            threadId,
          });
          if (threadId !== null && !threadExists) throw threadNotFound(threadId);
          if (!assistantExists) throw assistantNotFound(body.assistant_id);
          return await repository
            .insert(visibility, {
              ...timing,
              cron_id: cronId,
              assistant_id: assistantId,
              thread_id: threadId,
              on_run_completed: threadId === null ? (body.on_run_completed ?? "delete") : null,
              user_id: userIdOf(caller) ?? null,
              ...user,
              metadata,
              payload: JSON.stringify(payload),
              next_run_date: nextOf(now, timing),
              error: null,
            })
            .catch((error: unknown) => {
              // The thread was deleted after the check.
              if (sqlState(error) === FOREIGN_KEY_VIOLATION) throw threadNotFound(threadId ?? "");
              throw error;
            });
        },
      );
      onChanged();
      return toCron(row);
    },

    /** Throws `cronNotFound`. */
    async get(caller: Caller, cronId: string): Promise<CronRecord> {
      const row = await repository.find(
        await authorize(caller, "crons", "read", { cron_id: cronId }),
        cronId,
      );
      if (row === undefined) throw cronNotFound(cronId);
      return toCron(row);
    },

    /**
     * The caller may become the runs' user (`takesOver`). Throws `cronNotFound`, `invalid`, and for an enabled cron
     * `threadNotFound` and `assistantNotFound`.
     */
    async patch(caller: Caller, cronId: string, body: CronPatch): Promise<CronRecord> {
      const visibility = await authorize(caller, "crons", "update", {
        ...{ cron_id: cronId, schedule: body.schedule },
        ...{ metadata: body.metadata ?? {}, payload: payloadOf(body) },
      });
      const payload = payloadOf(visibility.value.payload);
      const known = await repository.find(visibility, cronId);
      if (known === undefined) throw cronNotFound(cronId);
      const { rights, metadata: granted } = await may.runs(caller, {
        ...{ assistantId: known.assistant_id, threadId: known.thread_id },
        ...{ metadata: visibility.value.metadata, payload },
      });
      assertRecursionLimit(payload.config as JsonObject | undefined, recursionLimitMax);
      checkWebhook(payload.webhook as string | undefined);
      const row = await database.transaction(async (transaction) => {
        const before = await repository.find(visibility, cronId, transaction);
        if (before === undefined) throw cronNotFound(cronId);
        const around = await repository.surroundings(
          rights,
          { assistantId: before.assistant_id, threadId: before.thread_id },
          transaction,
        );
        const { now } = around;
        if (body.enabled ?? before.enabled) assertGoesOn(before, around);
        const timing: Timing = {
          schedule: body.schedule ?? before.schedule,
          timezone: body.timezone ?? before.timezone,
          end_time: body.end_time === undefined ? before.end_time : body.end_time,
          enabled: body.enabled ?? before.enabled,
          next_run_date: null,
        };
        const metadata = { ...before.metadata, ...granted };
        if (Buffer.byteLength(JSON.stringify(metadata)) > MERGED_BYTES_AT_MOST) throw metadataTooLarge();
        const fields: CronFields = {
          ...timing,
          next_run_date: nextOf(now, timing, before),
          on_run_completed:
            before.thread_id === null ? (body.on_run_completed ?? before.on_run_completed) : null,
          metadata,
          payload: JSON.stringify({ ...(JSON.parse(before.payload) as JsonObject), ...payload }),
          error: timing.enabled ? null : before.error,
        };
        const user = takesOver(caller, before, fields) ? runsAs(database, caller) : undefined;
        return await repository.update(transaction, visibility, cronId, fields, user);
      });
      onChanged();
      return toCron(row);
    },

    /** The cron's runs stay. Throws `cronNotFound`. */
    async remove(caller: Caller, cronId: string): Promise<void> {
      const removed = await repository.remove(
        await authorize(caller, "crons", "delete", { cron_id: cronId }),
        cronId,
      );
      if (!removed) throw cronNotFound(cronId);
    },

    async search(caller: Caller, search: CronSearch, signal?: AbortSignal): Promise<Page<CronExtract>> {
      const visibility = await may.search(caller, search);
      const fields = search.select === undefined || search.select.length === 0 ? CRON_FIELDS : search.select;
      const { rows, total: found, cursor } = await searcher.page(visibility, search, fields, signal);
      const total = await totalOf(search, found, () => searcher.count(visibility, search, signal));
      return { items: rows.map((row) => toExtract(row, fields)), total, offset: search.offset, cursor };
    },

    async count(caller: Caller, filter: CronFilter, signal?: AbortSignal): Promise<number> {
      return await searcher.count(await may.search(caller, filter), filter, signal);
    },
  };
};

export type CronService = ReturnType<typeof createCronService>;
