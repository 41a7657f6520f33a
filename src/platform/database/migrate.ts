import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { sqlState, StartError } from "../domain/errors.ts";
import { createBackOff } from "../lib/back-off.ts";
import type { Logger } from "../lib/logger.ts";
import { inSchema } from "./schema.ts";
import { statement } from "./statement.ts";

interface MigrateOptions {
  schema: string;
  /** Default: all of this version. */
  migrations?: readonly Migration[];
  logger: Logger;
}

export interface Migration {
  name: string;
  text: string;
  checksum: string;
}

const MIGRATIONS_FOLDER = fileURLToPath(new URL("../../../migrations/", import.meta.url));
const MIGRATION_LOCK = 7_448_120_262;
const INSUFFICIENT_PRIVILEGE = "42501";
/**
 * Every statement on a table queues behind a migration that waits for the table's lock. A search takes up to 2 seconds.
 */
const LOCK_TIMEOUT_MS = 1_000;
const PAUSE_AT_MOST_MS = 10_000;
/** lock_not_available and deadlock_detected. */
const LOCK_STATES: ReadonlySet<string> = new Set(["55P03", "40P01"]);

export const readMigrations = async (): Promise<Migration[]> => {
  const names = (await readdir(MIGRATIONS_FOLDER)).filter((name) => name.endsWith(".sql")).sort();
  return await Promise.all(
    names.map(async (name) => {
      const text = await readFile(`${MIGRATIONS_FOLDER}/${name}`, "utf8");
      return { name, text, checksum: createHash("sha256").update(text).digest("hex") };
    }),
  );
};

const FIND_SCHEMA = statement(
  { schema: "text" },
  (sql) =>
    `select session_user as "user", exists (select from pg_namespace where nspname = ${sql.schema}) as found`,
);

/** `create schema if not exists` needs the right to create schemas even if the schema exists. */
const ensureSchema = async (client: pg.Client, schema: string): Promise<void> => {
  const { rows } = await client.query<{ user: string; found: boolean }>(FIND_SCHEMA.compile({ schema }));
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

const HAS_TABLE = statement(
  { table: "text" },
  (sql) => `select to_regclass(${sql.table}) is not null as found`,
);

export const hasTable = async (client: pg.Client, schema: string, table: string): Promise<boolean> =>
  (await client.query<{ found: boolean }>(HAS_TABLE.compile({ table: `"${schema}".${table}` }))).rows[0]
    ?.found === true;

/** Checksums by name; undefined if the schema has no table of migrations. */
const readRan = async (client: pg.Client, schema: string): Promise<Map<string, string> | undefined> => {
  if (!(await hasTable(client, schema, "migrations"))) return undefined;
  const ran = await client.query<{ name: string; checksum: string }>(
    inSchema(schema)("select name, checksum from threadloom.migrations order by name"),
  );
  return new Map(ran.rows.map((row) => [row.name, row.checksum]));
};

const asOwner = (schema: string, cause: unknown): unknown =>
  sqlState(cause) !== INSUFFICIENT_PRIVILEGE
    ? cause
    : new StartError(
        `The database user may not change the tables in the schema ${schema}, which this version has to: run ` +
          "'npx threadloom migrate' as the role that owns them (docs/database-role.md).",
        { cause },
      );

/** Throws StartError if another version made the tables. */
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

const ADD = statement(
  { name: "text", checksum: "text" },
  (sql) => `insert into threadloom.migrations (name, checksum) values (${sql.name}, ${sql.checksum})`,
);

const apply = async (
  client: pg.Client,
  { name, text, checksum }: Migration,
  schema: string,
): Promise<void> => {
  // Comes first: without advisory locks, the key of this row makes other processes wait for the commit.
  const { text: insert, values } = ADD.compile({ name, checksum });
  await client.query(inSchema(schema)(insert), values);
  try {
    await client.query(inSchema(schema)(text));
  } catch (error) {
    throw new Error(`Migration ${name} failed: ${(error as Error).message}`, { cause: error });
  }
};

const isLockFailure = (error: unknown): boolean =>
  LOCK_STATES.has(sqlState(error) ?? (error instanceof Error ? sqlState(error.cause) : undefined) ?? "");

/**
 * The advisory lock stays between tries, or replicas would take turns at blocking the table. The savepoint releases the
 * table locks.
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

const migrateOnce = async (client: pg.Client, options: MigrateOptions): Promise<string | undefined> => {
  const { schema, logger, migrations = await readMigrations() } = options;
  // Checked first, because the statements below need the owner of the tables.
  const known = await readRan(client, schema);
  if (known !== undefined && nextOf(migrations, known, schema) === undefined) return undefined;
  await client.query(`select pg_advisory_xact_lock(${MIGRATION_LOCK})`);
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
  logger[ran.size === 0 ? "debug" : "info"]({ migration: migration.name }, "migrating the database");
  // Migrations must not see `public`, whose tables may belong to others.
  await client.query(`set local search_path to "${schema}"`);
  await applyWhenUnlocked(client, migration, options);
  return migration.name;
};

/**
 * Runs each migration in its own transaction, on a connection without time limits. Throws StartError if another version
 * made the tables, or if the user lacks a right.
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
      // A rollback on a lost connection fails; throw the first error.
      await client.query("rollback").catch(() => undefined);
      throw error;
    }
  };
  try {
    let applied = 0;
    while ((await transaction()) !== undefined) applied += 1;
    if (applied > 0)
      logger.info({ schema, migrations: applied }, "migrations were applied: the database is up to date");
  } finally {
    await client.end();
  }
};

/** `edited`: the file differs from the applied one. `unknown`: applied by a newer version. */
type MigrationState = "applied" | "pending" | "edited" | "unknown";

export interface MigrationStatus {
  name: string;
  state: MigrationState;
}

export const readMigrationStatus = async (client: pg.Client, schema: string): Promise<MigrationStatus[]> => {
  const ran = (await readRan(client, schema)) ?? new Map<string, string>();
  const known = await readMigrations();
  const states = known.map(({ name, checksum }): MigrationStatus => {
    const before = ran.get(name);
    return { name, state: before === undefined ? "pending" : before === checksum ? "applied" : "edited" };
  });
  const unknown = [...ran.keys()]
    .filter((name) => !known.some((migration) => migration.name === name))
    .map((name): MigrationStatus => ({ name, state: "unknown" }));
  return [...states, ...unknown].sort((one, other) => (one.name < other.name ? -1 : 1));
};
