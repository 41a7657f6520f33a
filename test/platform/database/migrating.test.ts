import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { migrate, readMigrations, type Migration } from "../../../src/platform/database/migrate.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { eventually } from "../../helpers/conditions.ts";
import { listeningLogger } from "../../helpers/parts.ts";
import { query } from "../../helpers/query.ts";

/** A migration beside running servers: which statements it waits for, and which wait for it. */

let database: FreshDatabase;
let reader: pg.Client;
beforeEach(async () => {
  database = await freshDatabase();
  reader = new pg.Client({ connectionString: database.connectionString });
  await reader.connect();
});
afterEach(async () => {
  await reader.end();
  await database.drop();
});

const LATER: Migration = {
  name: "0002_later.sql",
  text: "alter table threads add column later text",
  checksum: "later",
};

const isApplied = async (): Promise<boolean> =>
  (await query(database, "select from threadloom.migrations where name = $1", [LATER.name])).length === 1;

test("an open transaction with a read and a pending migration block no other statement, and the migration follows the reader", async () => {
  await reader.query("begin");
  await reader.query("select from threadloom.threads");
  const { logger, lines } = listeningLogger();
  const migrations = [...(await readMigrations()), LATER];
  const start = () => migrate(database.connectionString, { schema: "threadloom", migrations, logger });
  // Two replicas must not take turns at blocking the table.
  const migrating = Promise.all([start(), start()]);
  try {
    await eventually("the migration waits for the reader", async () => {
      const waiting = await query(
        database,
        "select from pg_locks where relation = 'threadloom.threads'::regclass and not granted",
      );
      return waiting.length > 0;
    });
    // A statement that waited for the reader would be ended by its own time-out.
    await query(
      database,
      "set statement_timeout = '30s'; insert into threadloom.threads (thread_id) values (gen_random_uuid())",
    );
    expect(await isApplied()).toBe(false);
    await eventually("the log says it", () => lines.join("").includes("a migration waits for a lock"));
  } finally {
    await reader.query("commit");
  }
  await migrating;
  expect(await isApplied()).toBe(true);
  expect(await query(database, "select later from threadloom.threads")).toEqual([{ later: null }]);
});
