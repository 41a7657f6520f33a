import { type Visibility, whereVisible } from "../../access/visibility.ts";
import { composedRead, queriesOver } from "../../platform/database/queries.ts";
import type { Database, Queryable, Records } from "../../platform/database/database.ts";
import { literal, statement } from "../../platform/database/statement.ts";
import type { CronRow } from "../../platform/database/tables.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import type { CreationRights } from "../../engine/queue/sql/create.ts";
import { timestamp } from "../../platform/lib/timestamps.ts";
import type { CronExtract, CronFilter, CronRecord, CronSearch } from "./schemas.ts";
import { sql, type RawBuilder, type SqlBool } from "kysely";
import type { PageColumns } from "../../platform/database/bounded-reads.ts";
import { assertOnePlace } from "../../platform/domain/cursors.ts";
import {
  isBehindCursor,
  keyOf,
  nextCursor,
  type KeyColumns,
  type KeyOrder,
} from "../../platform/domain/key-order.ts";
import { assistantIdOf } from "../../platform/domain/assistant-ids.ts";

export const COLUMNS = [
  "cron_id",
  "assistant_id",
  "thread_id",
  "schedule",
  "timezone",
  "end_time",
  "enabled",
  "on_run_completed",
  "user_id",
  "metadata",
  "payload",
  "next_run_date",
  "error",
  "created_at",
  "updated_at",
] as const satisfies (keyof CronRow)[];

export type CronFields = Omit<
  CronRow,
  "cron_id" | "assistant_id" | "thread_id" | "user_id" | "created_at" | "updated_at"
>;
export interface CronUser {
  /** Null if an API key created the cron. */
  auth_user: JsonObject | null;
  /** Limits count the runs under this name. */
  caller: string | null;
}

type NewCron = CronFields & Pick<CronRow, "cron_id" | "assistant_id" | "thread_id" | "user_id"> & CronUser;

export interface Surroundings {
  /** The database's time, because the clocks of processes differ. */
  now: Date;
  assistantExists: boolean;
  threadExists: boolean;
}

const stored = (
  { encryption }: Queryable,
  cronId: string,
  { metadata, payload }: Pick<CronRow, "metadata" | "payload">,
): { metadata: string; payload: string } => ({
  metadata: encryption.stored("crons", "metadata", metadata, { cron_id: cronId }),
  payload: encryption.stored("crons", "payload", payload, { cron_id: cronId }),
});

const storedUser = ({ encryption }: Queryable, cronId: string, user: JsonObject | null): string | null =>
  encryption.stored("crons", "auth_user", user && JSON.stringify(user), { cron_id: cronId });

const SURROUNDINGS = statement(
  { assistantId: "uuid", threadId: "uuid", assistantVisible: "fragment", threadVisible: "fragment" },
  (sql) => `select clock_timestamp() as now,
    exists (select from threadloom.assistants
      where assistant_id = ${sql.assistantId} and ${sql.assistantVisible}) as assistant,
    exists (select from threadloom.threads where thread_id = ${sql.threadId} and ${sql.threadVisible}) as thread`,
);

const COUNT_OF_CALLER = statement(
  { caller: "text", limit: "fragment" },
  (sql) => `select count(*)::int as crons from (
    select from threadloom.crons where caller = ${sql.caller} limit ${sql.limit}) counted`,
);

export const createCronRepository = (database: Database) => ({
  /** Indexes: assistants_pkey, threads_pkey. */
  async surroundings(
    rights: CreationRights,
    place: { assistantId: string; threadId: string | null },
    records: Records = database,
  ): Promise<Surroundings> {
    const [row] = await SURROUNDINGS.query<{ now: Date; assistant: boolean; thread: boolean }>(records, {
      ...place,
      assistantVisible: rights.assistants.on("metadata"),
      threadVisible: rights.threads.on("metadata"),
    });
    return {
      now: row?.now ?? new Date(),
      assistantExists: row?.assistant === true,
      threadExists: row?.thread === true,
    };
  },

  async insert(_visibility: Visibility<"crons">, cron: NewCron): Promise<CronRow> {
    const row = await queriesOver(database)
      .insertInto("crons")
      .values({
        ...cron,
        ...stored(database, cron.cron_id, cron),
        auth_user: storedUser(database, cron.cron_id, cron.auth_user),
        user_id: database.encryption.stored("crons", "user_id", cron.user_id, { cron_id: cron.cron_id }),
      })
      .returning(COLUMNS)
      .executeTakeFirstOrThrow();
    return database.encryption.decrypted("crons", row);
  },

  /** Counts up to `atMost`. Index: crons_of_caller. */
  async countOf(caller: string, atMost: number): Promise<number> {
    const [row] = await COUNT_OF_CALLER.query<{ crons: number }>(database, {
      caller,
      limit: literal(atMost),
    });
    return row?.crons ?? 0;
  },

  /** In a `transaction`, the cron is locked: it does not fire before the end. */
  async find(
    visibility: Visibility<"crons">,
    cronId: string,
    transaction?: Records,
  ): Promise<CronRow | undefined> {
    const query = queriesOver(transaction ?? database)
      .selectFrom("crons")
      .select(COLUMNS)
      .where("cron_id", "=", cronId)
      .where(whereVisible(visibility, "metadata"));
    const row = await (transaction === undefined ? query : query.forUpdate()).executeTakeFirst();
    return row && database.encryption.decrypted("crons", row);
  },

  /** The caller holds the lock. Without `user`, the former user stays. */
  async update(
    transaction: Records,
    visibility: Visibility<"crons">,
    cronId: string,
    fields: CronFields,
    user?: CronUser,
  ): Promise<CronRow> {
    const row = await queriesOver(transaction)
      .updateTable("crons")
      .set((expression) => ({
        ...fields,
        ...stored(transaction, cronId, fields),
        ...(user && { caller: user.caller, auth_user: storedUser(transaction, cronId, user.auth_user) }),
        updated_at: expression.fn<Date>("now"),
      }))
      .where("cron_id", "=", cronId)
      .where(whereVisible(visibility, "metadata"))
      .returning(COLUMNS)
      .executeTakeFirstOrThrow();
    return transaction.encryption.decrypted("crons", row);
  },

  /** False if the cron is missing. */
  async remove(visibility: Visibility<"crons">, cronId: string): Promise<boolean> {
    const { numDeletedRows } = await queriesOver(database)
      .deleteFrom("crons")
      .where("cron_id", "=", cronId)
      .where(whereVisible(visibility, "metadata"))
      .executeTakeFirstOrThrow();
    return numDeletedRows > 0n;
  },
});

export type CronRepository = ReturnType<typeof createCronRepository>;

type CronRowNow = CronRow & { now: Date };

const timeOrNull = (time: Date | null): string | null => (time === null ? null : timestamp(time));

/** The payload is as in the hosted service. */
export const toCron = (row: CronRow): CronRecord => ({
  ...row,
  end_time: timeOrNull(row.end_time),
  created_at: timestamp(row.created_at),
  updated_at: timestamp(row.updated_at),
  payload: {
    ...(JSON.parse(row.payload) as JsonObject),
    assistant_id: row.assistant_id,
    schedule: row.schedule,
  },
  next_run_date: timeOrNull(row.next_run_date),
});

export const toExtract = (row: CronRowNow, select: readonly (keyof CronExtract)[]): CronExtract => {
  const whole: CronExtract = { ...toCron(row), now: timestamp(row.now) };
  return Object.fromEntries(select.map((field) => [field, whole[field]]));
};

interface CronPage {
  rows: CronRowNow[];
  /** Undefined for an empty page. */
  total: number | undefined;
  cursor: string | undefined;
}

const EMPTY = { metadata: "'{}'::jsonb", payload: "'{}'::text" } as const;

const orderOf = ({ sort_by: key = "created_at", sort_order: direction = "desc" }: CronSearch): KeyOrder => ({
  ...{ list: "crons", key, id: "cron_id", direction },
  holds: key.endsWith("_id") ? "ids" : "times",
});

const matching = (
  { encryption }: Database,
  visibility: Visibility<"crons">,
  { assistant_id, thread_id, enabled, metadata }: CronFilter,
): RawBuilder<SqlBool>[] => {
  encryption.assertSearchable(metadata);
  const conditions = [whereVisible(visibility, "metadata")];
  if (assistant_id !== undefined) conditions.push(sql`assistant_id = ${assistantIdOf(assistant_id)}::uuid`);
  if (thread_id !== undefined) conditions.push(sql`thread_id = ${thread_id}::uuid`);
  if (enabled !== undefined) conditions.push(sql`enabled = ${enabled}::boolean`);
  if (metadata !== undefined) conditions.push(sql`metadata @> ${JSON.stringify(metadata)}::jsonb`);
  return conditions;
};

/**
 * Metadata have no index, because each firing would update it. Indexes: crons_by_assistant, crons_by_thread,
 * crons_by_creation.
 */
export const createCronSearcher = (database: Database) => ({
  /** A page that would grow too large ends early. Rejects like `boundedRead`. */
  async page(
    visibility: Visibility<"crons">,
    search: CronSearch,
    fields: readonly string[],
    signal?: AbortSignal,
  ): Promise<CronPage> {
    assertOnePlace(search);
    const conditions = matching(database, visibility, search);
    const order = orderOf(search);
    if (search.cursor !== undefined) conditions.push(isBehindCursor(order, search.cursor));
    const where = sql.join(conditions, sql` and `);
    const columns = COLUMNS.map((column) =>
      (column === "metadata" || column === "payload") && !fields.includes(column)
        ? `${EMPTY[column]} as ${column}`
        : column,
    );
    const direction = sql.raw(order.direction);
    const query = sql`
      select ${sql.raw(columns.join(", "))}, now() as now, ${sql.raw(keyOf(order))} as cursor_key,
        cron_id::text as cursor_id, (select count(*)::int from threadloom.crons where ${where}) as total
      from threadloom.crons where ${where} order by ${sql.raw(order.key)} ${direction} nulls last, cron_id ${direction}
      limit ${search.limit}::int offset ${search.offset}::int`;
    const found = await composedRead<CronRowNow & PageColumns & KeyColumns & { total: number }>(
      database.boundedRead,
      query,
      { signal, weight: { columns: ["metadata"], octets: "octet_length(payload)" } },
    );
    const total = found[0]?.total;
    const cursor = nextCursor(order, found, { offset: search.offset, matching: total ?? 0 });
    return { rows: database.encryption.decryptedRows("crons", found), total, cursor };
  },

  /** Rejects like `boundedRead`. */
  async count(visibility: Visibility<"crons">, filter: CronFilter, signal?: AbortSignal): Promise<number> {
    const where = sql.join(matching(database, visibility, filter), sql` and `);
    const rows = await composedRead<{ count: number }>(
      database.boundedRead,
      sql`select count(*)::int as count from threadloom.crons where ${where}`,
      { signal },
    );
    return rows[0]?.count ?? 0;
  },
});

export type CronSearcher = ReturnType<typeof createCronSearcher>;
