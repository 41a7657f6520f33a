import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { sqlState, StartError } from "../domain/errors.ts";
import type { Logger } from "../lib/logger.ts";
import { moveFromPublic } from "./former-schema.ts";
import { againIfOthersWereFirst } from "./accelerators.ts";
import { inSchema } from "./schema.ts";

export interface MigrateOptions {
  /** Where the tables are to stand; made if it is missing. */
  schema: string;
  /** False where the database has none: then those that start at once try again until one was first. */
  advisoryLocks?: boolean;
  /** The name of the last one to make, for data of an older version; all if left out. */
  upTo?: string | undefined;
  logger: Logger;
}

/** A file of `migrations/`. */
export interface Migration {
  name: string;
  text: string;
  checksum: string;
}

const MIGRATIONS_FOLDER = fileURLToPath(new URL("../../migrations/", import.meta.url));
/** Key of the advisory lock that lets one of several starting replicas migrate while the others wait. */
const MIGRATION_LOCK = 7_448_120_262;
const INSUFFICIENT_PRIVILEGE = "42501";

/** All that this version knows, in their order. */
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

/** Names and checksums of those that have run; undefined in a schema that is not there, or has none yet. */
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

const migrateWith = async (
  client: pg.Client,
  { schema, logger, advisoryLocks = true, upTo }: MigrateOptions,
): Promise<string[]> => {
  const qualified = inSchema(schema);
  if (advisoryLocks) await client.query("select pg_advisory_xact_lock($1)", [MIGRATION_LOCK]);
  const migrations = (await readMigrations()).filter(({ name }) => upTo === undefined || name <= upTo);
  // Nothing to do: nothing is asked of the database that only the owner of the tables may do.
  const known = await readRan(client, schema);
  const isUpToDate =
    known?.size === migrations.length &&
    migrations.every(({ name, checksum }) => known.get(name) === checksum);
  if (isUpToDate) return [];
  await ensureSchema(client, schema);
  // The migrations name no schema. Nothing of `public` is in sight of them: its tables may be of others.
  await client.query(`set local search_path to "${schema}"`);
  const moved = await moveFromPublic(client, schema);
  if (moved > 0) logger.info({ schema, tables: moved }, "moved the tables from the schema public");
  const ran = (await readRan(client, schema)) ?? new Map<string, string>();
  const unknown = [...ran.keys()].filter((name) => !migrations.some((migration) => migration.name === name));
  if (unknown.length > 0) {
    throw new StartError(
      `The schema ${schema} of the database was made by a newer version of this server (${unknown.at(-1)}), which ` +
        "this one would damage: start the newer version.",
    );
  }
  await client
    .query(
      qualified(
        `create table if not exists threadloom.migrations (
         name text primary key, checksum text not null, ran_at timestamptz not null default now())`,
      ),
    )
    .catch((error: unknown) => {
      throw asOwner(schema, error);
    });
  const done: string[] = [];
  for (const { name, text, checksum } of migrations) {
    const before = ran.get(name);
    if (before === checksum) continue;
    if (before !== undefined) {
      throw new Error(`Migration ${name} was edited after it ran on this database; add a new one instead.`);
    }
    // A new database has all of them before it: the line that it is up to date says as much.
    logger[ran.size === 0 ? "debug" : "info"]({ migration: name }, "migrating the database");
    // First of all: its key keeps whoever runs the same one at the same time waiting until this one is committed.
    await client.query(qualified("insert into threadloom.migrations (name, checksum) values ($1, $2)"), [
      name,
      checksum,
    ]);
    try {
      await client.query(qualified(text));
    } catch (error) {
      throw new Error(`Migration ${name} failed: ${(error as Error).message}`, { cause: error });
    }
    done.push(name);
  }
  return done;
};

/**
 * Brings the tables up to date: every `migrations/NNNN_title.sql` that has not run yet, in order, all of a start in
 * one transaction: a start that fails half-way leaves what was there before. An advisory lock makes replicas that
 * start at once wait for each other. What former versions made in `public` is moved into the schema first.
 *
 * Uses a connection of its own: a migration may take longer than any statement of the service is allowed to.
 * Throws StartError if a newer version has migrated the database, or if the schema can't be made; Error if a migration
 * that has run was edited since: the tables would no longer be what the files say.
 */
export const migrate = async (connectionString: string, options: MigrateOptions): Promise<void> => {
  const { schema, logger } = options;
  const client = new pg.Client({ connectionString, application_name: "threadloom migrate" });
  client.on("error", (error) => logger.error({ err: error }, "the connection was lost while migrating"));
  await client.connect();
  const transaction = async (): Promise<string[]> => {
    await client.query("begin");
    try {
      const done = await migrateWith(client, options);
      await client.query("commit");
      return done;
    } catch (error) {
      // The first error says what happened; a rollback on a lost connection only fails once more.
      await client.query("rollback").catch(() => undefined);
      throw error;
    }
  };
  try {
    const done = await againIfOthersWereFirst(transaction);
    if (done.length > 0) logger.info({ schema, migrations: done.length }, "the database is up to date");
  } finally {
    await client.end();
  }
};
