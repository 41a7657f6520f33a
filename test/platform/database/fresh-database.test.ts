import pg from "pg";
import { afterEach, expect, test } from "vitest";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";

const made: FreshDatabase[] = [];
afterEach(async () => {
  await Promise.all(made.splice(0).map((database) => database.drop()));
});

const aDatabase = async (): Promise<FreshDatabase> => {
  const database = await freshDatabase();
  made.push(database);
  return database;
};

const query = async <Row extends pg.QueryResultRow>(
  connectionString: string,
  text: string,
): Promise<Row[]> => {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    return (await client.query<Row>(text)).rows;
  } finally {
    await client.end();
  }
};

test("a fresh database is migrated and empty", async () => {
  const { connectionString } = await aDatabase();
  expect(await query(connectionString, "select count(*)::int as threads from threadloom.threads")).toEqual([
    { threads: 0 },
  ]);
  expect((await query(connectionString, "select from threadloom.migrations")).length).toBeGreaterThan(0);
});

test("databases created at once don't share rows", async () => {
  const databases = await Promise.all([aDatabase(), aDatabase(), aDatabase(), aDatabase()]);
  await query(
    databases[0]!.connectionString,
    "insert into threadloom.threads (thread_id) values ('00000000-0000-7000-8000-000000000000')",
  );
  const counts = await Promise.all(
    databases.map(({ connectionString }) =>
      query<{ threads: number }>(connectionString, "select count(*)::int as threads from threadloom.threads"),
    ),
  );
  expect(counts.map((rows) => rows[0]?.threads)).toEqual([1, 0, 0, 0]);
});

test("a database is dropped even if a client is connected", async () => {
  const { connectionString, drop } = await aDatabase();
  const client = new pg.Client({ connectionString });
  const lost = new Promise((resolve) => client.on("error", resolve));
  await client.connect();
  await drop();
  await lost;
  await expect(query(connectionString, "select")).rejects.toThrow(/does not exist/);
});
