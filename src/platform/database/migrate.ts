import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { sqlState, StartError } from "../domain/errors.ts";
import { createBackOff } from "../lib/back-off.ts";
import type { Logger } from "../lib/logger.ts";
import { againIfOthersWereFirst } from "./accelerators.ts";
import { inSchema } from "./schema.ts";

export interface MigrateOptions {
  /** Where the tables stand; created if it is missing. */
  schema: string;
  /** False where the database has none: then those that start at once try again until one was first. */
  advisoryLocks?: boolean;
  /** The migrations to apply, in order; all of this version if left out. A backup is restored with those it was made with. */
  migrations?: readonly Migration[];
  logger: Logger;
}

/** A file of `migrations/`. */
export interface Migration {
  name: string;
  text: string;
  checksum: string;
}

const MIGRATIONS_FOLDER = fileURLToPath(new URL("../../../migrations/", import.meta.url));
/** Key of the advisory lock that lets one of several starting replicas migrate while the others wait. */
const MIGRATION_LOCK = 7_448_120_262;
const INSUFFICIENT_PRIVILEGE = "42501";
/**
 * Every statement on a table waits behind a migration that waits for its lock. After this time the migration steps back
 * and lets them pass. A search takes up to 2 seconds (bounded-reads.ts), so several tries may be needed.
 */
const LOCK_TIMEOUT_MS = 1_000;
const PAUSE_AT_MOST_MS = 10_000;
/** SQLSTATE: lock_not_available (the time-out above), and deadlock_detected. */
const LOCK_STATES: ReadonlySet<string> = new Set(["55P03", "40P01"]);

/** The migrations of this version, in order. */
export const readMigrations = async (): Promise<Migration[]> => {
  const names = (await readdir(MIGRATIONS_FOLDER)).filter((name) => name.endsWith(".sql")).sort();
  return await Promise.all(
    names.map(async (name) => {
      const text = await readFile(`${MIGRATIONS_FOLDER}/${name}`, "utf8");
      return { name, text, checksum: createHash("sha256").update(text).digest("hex") };
    }),
  );
};

/**
 * `create schema if not exists` asks for the right to create schemas even where the schema exists: an administrator
 * may have made it for a user who has no such right.
 */
const ensureSchema = async (client: pg.Client, schema: string): Promise<void> => {
  const { rows } = await client.query<{ user: string; found: boolean }>(
    `select session_user as "user", exists (select from pg_namespace where nspname = $1) as found`,
    [schema],
  );
  if (rows[0]?.found === true) return;
  try {
    await client.query(`create schema "${schema}"`);
  } catch (error) {
    if (sqlState(error) !== INSUFFICIENT_PRIVILEGE) throw error;
    throw new StartError(
      `The database user may not create the schema ${schema}: let an administrator run ` +
        `'create schema ${schema} authorization ${rows[0]?.user}' in this database, or name a schema that ` +
        "is there with DATABASE_SCHEMA.",
      { cause: error },
    );
  }
};

/** Names and checksums of the migrations that have run; undefined if the schema or its table of them is missing. */
export const readRan = async (
  client: pg.Client,
  schema: string,
): Promise<Map<string, string> | undefined> => {
  const { rows } = await client.query<{ found: boolean }>("select to_regclass($1) is not null as found", [
    `"${schema}".migrations`,
  ]);
  if (rows[0]?.found !== true) return undefined;
  const ran = await client.query<{ name: string; checksum: string }>(
    inSchema(schema)("select name, checksum from threadloom.migrations order by name"),
  );
  return new Map(ran.rows.map((row) => [row.name, row.checksum]));
};

/** Says what is to be done where a server's role may use the tables, and not change them. */
const asOwner = (schema: string, cause: unknown): unknown =>
  sqlState(cause) !== INSUFFICIENT_PRIVILEGE
    ? cause
    : new StartError(
        `The database user may not change the tables in the schema ${schema}, which this version has to: run ` +
          "'npx threadloom migrate' as the role that owns them (docs/database-role.md).",
        { cause },
      );

/** The first migration that has not run. Throws StartError if the tables are those of another version. */
const nextOf = (
  migrations: readonly Migration[],
  ran: ReadonlyMap<string, string>,
  schema: string,
): Migration | undefined => {
  const other = [...ran].find(
    ([ranName, ranChecksum]) =>
      !migrations.some(({ name, checksum }) => name === ranName && checksum === ranChecksum),
  );
  if (other === undefined) return migrations.find(({ name }) => !ran.has(name));
  const [name] = other;
  const isEdited = migrations.some((migration) => migration.name === name);
  throw new StartError(
    isEdited
      ? `The tables in the schema ${schema} were made by another edition of ${name}: start the version that made ` +
          "them, or name an empty schema with DATABASE_SCHEMA."
      : `The schema ${schema} of the database was made by a newer version of this server (${name}), which this one ` +
          "would damage: start the newer version.",
  );
};

const apply = async (
  client: pg.Client,
  { name, text, checksum }: Migration,
  schema: string,
): Promise<void> => {
  // First: without advisory locks its key keeps other processes waiting until this transaction is committed.
  await client.query(inSchema(schema)("insert into threadloom.migrations (name, checksum) values ($1, $2)"), [
    name,
    checksum,
  ]);
  try {
    await client.query(inSchema(schema)(text));
  } catch (error) {
    throw new Error(`Migration ${name} failed: ${(error as Error).message}`, { cause: error });
  }
};

const isLockFailure = (error: unknown): boolean =>
  LOCK_STATES.has(sqlState(error) ?? (error instanceof Error ? sqlState(error.cause) : undefined) ?? "");

/**
 * Tries until the locks are there. The transaction, and with it the advisory lock, stays open between tries: replicas
 * that start at once would otherwise take turns at blocking the table. The savepoint gives back the locks on tables.
 */
const applyWhenUnlocked = async (
  client: pg.Client,
  migration: Migration,
  { schema, logger }: MigrateOptions,
): Promise<void> => {
  const backOff = createBackOff({ firstMs: LOCK_TIMEOUT_MS, longestMs: PAUSE_AT_MOST_MS });
  await client.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
  await client.query("savepoint unlocked");
  for (;;) {
    try {
      return await apply(client, migration, schema);
    } catch (error) {
      if (!isLockFailure(error)) throw error;
      await client.query("rollback to savepoint unlocked");
      logger.warn(
        { migration: migration.name },
        "a migration waits for a lock: end the oldest transaction in pg_stat_activity if this goes on",
      );
      await delay(backOff.next());
    }
  }
};

/** Applies the next migration, in the caller's transaction. Answers its name; undefined: the tables are up to date. */
const migrateOnce = async (client: pg.Client, options: MigrateOptions): Promise<string | undefined> => {
  const { schema, logger, advisoryLocks = true, migrations = await readMigrations() } = options;
  // Nothing to do: nothing is asked of the database that only the owner of the tables may do.
  const known = await readRan(client, schema);
  if (known !== undefined && nextOf(migrations, known, schema) === undefined) return undefined;
  if (advisoryLocks) await client.query("select pg_advisory_xact_lock($1)", [MIGRATION_LOCK]);
  await ensureSchema(client, schema);
  await client
    .query(
      inSchema(schema)(
        `create table if not exists threadloom.migrations (
         name text primary key, checksum text not null, ran_at timestamptz not null default now())`,
      ),
    )
    .catch((error: unknown) => {
      throw asOwner(schema, error);
    });
  const ran = (await readRan(client, schema)) ?? new Map<string, string>();
  const migration = nextOf(migrations, ran, schema);
  if (migration === undefined) return undefined;
  // A new database has all of them before it: the line that it is up to date says as much.
  logger[ran.size === 0 ? "debug" : "info"]({ migration: migration.name }, "migrating the database");
  // The migrations name no schema. They must not see `public`: its tables may belong to others.
  await client.query(`set local search_path to "${schema}"`);
  await applyWhenUnlocked(client, migration, options);
  return migration.name;
};

/**
 * Brings the tables up to date: applies every `migrations/NNNN_title.sql` that has not run yet, in order, each in its own
 * transaction. An advisory lock makes replicas that start at once wait for each other. A migration that waits for the
 * lock of a table steps back after a second, so that other statements pass, and tries again.
 *
 * Uses a connection of its own: a migration may take longer than any statement of the service is allowed to.
 * Throws StartError if another version has made the tables, or if the schema can't be made.
 */
export const migrate = async (connectionString: string, options: MigrateOptions): Promise<void> => {
  const { schema, logger } = options;
  const client = new pg.Client({ connectionString, application_name: "threadloom migrate" });
  client.on("error", (error) => logger.error({ err: error }, "the connection was lost while migrating"));
  await client.connect();
  const transaction = async (): Promise<string | undefined> => {
    await client.query("begin");
    try {
      const name = await migrateOnce(client, options);
      await client.query("commit");
      return name;
    } catch (error) {
      // The first error says what happened; a rollback on a lost connection only fails once more.
      await client.query("rollback").catch(() => undefined);
      throw error;
    }
  };
  try {
    let applied = 0;
    while ((await againIfOthersWereFirst(transaction)) !== undefined) applied += 1;
    if (applied > 0) logger.info({ schema, migrations: applied }, "the database is up to date");
  } finally {
    await client.end();
  }
};
