import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { afterEach, describe, expect, test } from "vitest";
import { migrate, readMigrations, type Migration } from "../../../src/platform/database/migrate.ts";
import { inSchema, isSchemaName } from "../../../src/platform/database/schema.ts";
import { startTestServer } from "../../helpers/app.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { listeningLogger } from "../../helpers/parts.ts";

/** The schema of the tables: what a start creates, moves, refuses, and leaves alone. */

const MIGRATIONS = fileURLToPath(new URL("../../../migrations/", import.meta.url));
const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const connect = async (connectionString: string): Promise<pg.Client> => {
  const client = new pg.Client({ connectionString });
  client.on("error", () => undefined);
  await client.connect();
  closers.push(() => client.end());
  return client;
};

/** A new database, as its owner sees it. */
const anEmptyDatabase = async (): Promise<{ client: pg.Client } & FreshDatabase> => {
  const fresh = await freshDatabase();
  closers.push(() => fresh.drop());
  const client = await connect(fresh.connectionString);
  await client.query("drop schema threadloom cascade");
  return { ...fresh, client };
};

const tablesIn = async (client: pg.Client, schema: string): Promise<string[]> => {
  const { rows } = await client.query<{ name: string }>(
    "select table_name as name from information_schema.tables where table_schema = $1 order by 1",
    [schema],
  );
  return rows.map(({ name }) => name);
};

const logger = listeningLogger().logger;

const aMigration = (text: string): Migration => ({ name: "0002_later.sql", text, checksum: text });

describe("a start", () => {
  test("leaves the schema public unchanged, with other people's tables of the same names", async () => {
    const { client, connectionString } = await anEmptyDatabase();
    await client.query(
      `create table threads (mine text); create table checkpoints (mine text);
       create table migrations (id integer primary key); insert into migrations values (7)`,
    );
    const server = await startTestServer({ connectionString });
    closers.push(() => server.close());
    const created = await server.client.post("/threads").send({});
    expect(created.status).toBe(200);
    const ran = await server.client
      .post(`/threads/${created.body.thread_id}/runs/wait`)
      .send({ assistant_id: "agent", input: { messages: [{ role: "user", content: "hello" }] } });
    expect(ran.status).toBe(200);
    expect(await tablesIn(client, "public")).toEqual(["checkpoints", "migrations", "threads"]);
    expect((await client.query("select * from migrations")).rows).toEqual([{ id: 7 }]);
    expect((await client.query("select from threads")).rowCount).toBe(0);
    expect(await tablesIn(client, "threadloom")).toContain("threads");
  });

  test("names each migration in the log for an existing database, and says of a new one only that it is ready", async () => {
    const migrationLines = (lines: string[]): unknown[] =>
      lines
        .map((line) => JSON.parse(line) as { level: number; migration?: string })
        .filter(({ level, migration }) => level >= 30 && migration !== undefined);
    const fresh = listeningLogger();
    const { connectionString } = await anEmptyDatabase();
    await migrate(connectionString, { schema: "threadloom", logger: fresh.logger });
    expect(fresh.lines.join("")).toContain("the database is up to date");
    expect(migrationLines(fresh.lines)).toEqual([]);

    const later = listeningLogger();
    const migrations = [...(await readMigrations()), aMigration("create table threadloom.more (a int)")];
    await migrate(connectionString, { schema: "threadloom", migrations, logger: later.logger });
    expect(migrationLines(later.lines)).toEqual([expect.objectContaining({ migration: "0002_later.sql" })]);
  });

  test("that fails halfway keeps nothing of the failed migration, and all migrations before it", async () => {
    const { client, connectionString } = await anEmptyDatabase();
    const migrations = [...(await readMigrations()), aMigration("create table half (a int); select 1 / 0")];
    await expect(migrate(connectionString, { schema: "threadloom", migrations, logger })).rejects.toThrow(
      /0002_later.sql failed: division by zero/,
    );
    expect(await tablesIn(client, "threadloom")).toContain("threads");
    expect(await tablesIn(client, "threadloom")).not.toContain("half");
    const repaired = [...migrations.slice(0, -1), aMigration("create table whole (a int)")];
    await migrate(connectionString, { schema: "threadloom", migrations: repaired, logger });
    expect(await tablesIn(client, "threadloom")).toContain("whole");
  });

  test("is refused if another edition of a migration has run", async () => {
    const { connectionString } = await freshDatabaseToDrop();
    const [baseline] = await readMigrations();
    const migrations = [{ ...baseline!, checksum: "another" }];
    await expect(migrate(connectionString, { schema: "threadloom", migrations, logger })).rejects.toThrow(
      "were made by another edition of 0001_baseline.sql",
    );
  });

  test("is refused if a newer version has migrated the database", async () => {
    const { connectionString } = await freshDatabaseToDrop();
    const client = await connect(connectionString);
    await client.query(
      "insert into threadloom.migrations (name, checksum) values ('9999_from_the_future.sql', 'x')",
    );
    await expect(migrate(connectionString, { schema: "threadloom", logger })).rejects.toThrow(
      /made by a newer version of this server \(9999_from_the_future.sql\)/,
    );
  });

  test("of a user who may not create a schema names the SQL for an administrator", async () => {
    const { client, connectionString } = await anEmptyDatabase();
    const role = `limited_${Math.floor(Math.random() * 1e9)}`;
    await client.query(`create role ${role} login password 'secret'`);
    closers.push(async () => {
      await client.query(`drop owned by ${role} cascade`);
      await client.query(`drop role ${role}`);
    });
    const url = new URL(connectionString);
    url.username = role;
    url.password = "secret";
    await expect(migrate(url.href, { schema: "threadloom", logger })).rejects.toThrow(
      `create schema threadloom authorization ${role}`,
    );
    await client.query(`create schema threadloom authorization ${role}`);
    await migrate(url.href, { schema: "threadloom", logger });
    expect(await tablesIn(client, "threadloom")).toContain("runs");
  });

  const freshDatabaseToDrop = async (): Promise<FreshDatabase> => {
    const fresh = await freshDatabase();
    closers.push(() => fresh.drop());
    return fresh;
  };
});

test("two deployments share a database, each in a schema of its own, and receive only their own signals", async () => {
  const { client, connectionString } = await anEmptyDatabase();
  const [one, other] = await Promise.all([
    startTestServer({ connectionString, databaseSchema: "one" }),
    startTestServer({ connectionString, databaseSchema: "user" }),
  ]);
  closers.push(
    () => one.close(),
    () => other.close(),
  );
  const thread = (await one.client.post("/threads").send({ metadata: { of: "one" } })).body.thread_id;
  const answer = await one.client
    .post(`/threads/${thread}/runs/wait`)
    .send({ assistant_id: "agent", input: { messages: [{ role: "user", content: "hello" }] } });
  expect(answer.status).toBe(200);
  expect((await one.client.get(`/threads/${thread}/state`)).body.values.messages.length).toBeGreaterThan(1);
  await one.client.put("/store/items").send({ namespace: ["n"], key: "k", value: { is: "here" } });
  const assistant = (await one.client.post("/assistants").send({ graph_id: "agent" })).body.assistant_id;
  const changed = await one.client.patch(`/assistants/${assistant}`).send({ name: "Second" });
  expect((await one.client.get(`/assistants/${assistant}`)).body).toEqual(changed.body);
  expect((await one.client.post(`/assistants/${assistant}/versions`).send({})).body).toHaveLength(2);
  expect((await other.client.get(`/assistants/${assistant}`)).status).toBe(404);
  expect((await other.client.get(`/threads/${thread}`)).status).toBe(404);
  expect((await other.client.post("/threads/search").send({})).body).toEqual([]);
  expect((await other.client.post("/assistants/search").send({})).body.length).toBeGreaterThan(0);
  const names = await client.query<{ name: string }>(
    "select application_name as name from pg_stat_activity where datname = current_database() and application_name like '% listener' order by 1",
  );
  expect(names.rows.map(({ name }) => name)).toEqual(["one listener", "user listener"]);
  expect(await tablesIn(client, "threadloom")).toEqual([]);
});

test("a statement names the configured schema, quoted", () => {
  expect(inSchema("threadloom")("select from threadloom.runs")).toBe("select from threadloom.runs");
  expect(inSchema("user")("select from threadloom.runs r join threadloom.threads t using (thread_id)")).toBe(
    'select from "user".runs r join "user".threads t using (thread_id)',
  );
});

test.each(["", "Upper", "pg_mine", "a-b", 'a"b', "1a", "information_schema", "a".repeat(41)])(
  "%j is not a valid schema name",
  (name) => {
    expect(isSchemaName(name)).toBe(false);
  },
);

test("every statement in the code names the schema of its tables", () => {
  const source = fileURLToPath(new URL("../../../src/", import.meta.url));
  const migrations = readdirSync(MIGRATIONS).map((file) => readFileSync(MIGRATIONS + file, "utf8"));
  const created = migrations.flatMap((sql) => [...sql.matchAll(/create table (?:threadloom\.)?(\w+)/g)]);
  // These two are created by code: vectors only for semantic search, migrations by the migration code.
  const tables = [...created.map(([, name]) => name), "store_vectors", "migrations"].join("|");
  const unqualified = new RegExp(
    `\\b(from|into|update|join|truncate|references) (${tables})\\b(?= [a-z$(]|\`|")|, (${tables}) [a-z]+ where`,
  );
  const found = readdirSync(source, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.endsWith("cli/import/source.ts"))
    .flatMap((file) =>
      readFileSync(`${source}/${file}`, "utf8")
        .split("\n")
        .filter((line) => !/^\s*(\*|\/\/|\/\*\*|import )/.test(line) && unqualified.test(line))
        .map((line) => `${file}: ${line.trim()}`),
    );
  expect(found).toEqual([]);
});
