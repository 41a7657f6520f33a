import type { Visibility } from "../../access/visibility.ts";
import { queriesOver } from "../../platform/database/queries.ts";
import { whereVisible } from "../../access/where-visible.ts";
import type { Database, Queryable, Records } from "../../platform/database/database.ts";
import { literal, statement } from "../../platform/database/statement.ts";
import type { CronRow } from "../../platform/database/tables.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import type { CreationRights } from "../../engine/queue/sql/create.ts";

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

export type NewCron = CronFields &
  Pick<CronRow, "cron_id" | "assistant_id" | "thread_id" | "user_id"> &
  CronUser;

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

  async find(visibility: Visibility<"crons">, cronId: string): Promise<CronRow | undefined> {
    const row = await queriesOver(database)
      .selectFrom("crons")
      .select(COLUMNS)
      .where("cron_id", "=", cronId)
      .where(whereVisible(visibility, "metadata"))
      .executeTakeFirst();
    return row && database.encryption.decrypted("crons", row);
  },

  /** The cron does not fire before the transaction ends. */
  async lock(
    transaction: Records,
    visibility: Visibility<"crons">,
    cronId: string,
  ): Promise<CronRow | undefined> {
    const row = await queriesOver(transaction)
      .selectFrom("crons")
      .select(COLUMNS)
      .where("cron_id", "=", cronId)
      .where(whereVisible(visibility, "metadata"))
      .forUpdate()
      .executeTakeFirst();
    return row && transaction.encryption.decrypted("crons", row);
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
