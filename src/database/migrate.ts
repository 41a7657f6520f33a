import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import type { Logger } from "../lib/logger.ts";

const MIGRATIONS_FOLDER = fileURLToPath(new URL("../../migrations/", import.meta.url));
/** Key of the advisory lock that lets one of several starting replicas migrate while the others wait. */
const MIGRATION_LOCK = 7_448_120_262;

/**
 * Brings the schema up to date: every `migrations/NNNN_title.sql` that has not run yet, in order, each in a
 * transaction of its own, under an advisory lock, so that replicas may start at once.
 *
 * Uses a connection of its own, since a session lock must not sit on a pooled one.
 * Throws if a migration that has run was edited since: the schema would no longer be what the files say.
 */
export const migrate = async (connectionString: string, logger: Logger): Promise<void> => {
  const client = new pg.Client({ connectionString, application_name: "threadloom migrate" });
  client.on("error", (error) => logger.error({ err: error }, "the connection was lost while migrating"));
  await client.connect();
  try {
    await client.query("select pg_advisory_lock($1)", [MIGRATION_LOCK]);
    await client.query(
      `create table if not exists migrations (
         name text primary key, checksum text not null, ran_at timestamptz not null default now())`,
    );
    const { rows } = await client.query<{ name: string; checksum: string }>(
      "select name, checksum from migrations",
    );
    const ran = new Map(rows.map((row) => [row.name, row.checksum]));
    const names = (await readdir(MIGRATIONS_FOLDER)).filter((name) => name.endsWith(".sql")).sort();
    for (const name of names) {
      const text = await readFile(`${MIGRATIONS_FOLDER}/${name}`, "utf8");
      const checksum = createHash("sha256").update(text).digest("hex");
      const before = ran.get(name);
      if (before === checksum) continue;
      if (before !== undefined) {
        throw new Error(`Migration ${name} was edited after it ran on this database; add a new one instead.`);
      }
      logger.info({ migration: name }, "migrating the database");
      await client.query("begin");
      try {
        await client.query(text);
        await client.query("insert into migrations (name, checksum) values ($1, $2)", [name, checksum]);
        await client.query("commit");
      } catch (error) {
        await client.query("rollback");
        throw new Error(`Migration ${name} failed: ${(error as Error).message}`, { cause: error });
      }
    }
  } finally {
    await client.end();
  }
};
