import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { explainUnusable } from "../../../src/cli/own-database.ts";
import { migrate } from "../../../src/platform/database/migrate.ts";
import { apiOf, saying, textsOf } from "../../helpers/api.ts";
import { startTestServer } from "../../helpers/app.ts";
import { freshDatabase } from "../../helpers/database.ts";
import { listeningLogger } from "../../helpers/parts.ts";
import { readSteps } from "../../readme/document.ts";

/** The roles from the SQL in docs/database-role.md. */

const PAGE = fileURLToPath(new URL("../../../docs/database-role.md", import.meta.url));
const PASSWORD = randomBytes(8).toString("hex");
/** Roles belong to the whole server, where other tests run. */
const suffix = randomBytes(4).toString("hex");
const ROLES = ["threadloom_user", "threadloom_owner", "threadloom_server"];

const closers: (() => Promise<unknown>)[] = [];
let administrator: pg.Client;
let address: string;
beforeEach(async () => {
  const fresh = await freshDatabase();
  closers.push(() => fresh.drop());
  address = fresh.connectionString;
  administrator = await connected(address);
  await administrator.query("drop schema threadloom cascade");
});
afterEach(async () => {
  for (const role of ROLES.map(roleNamed)) {
    const { rowCount } = await administrator.query("select from pg_roles where rolname = $1", [role]);
    if (rowCount === 1) await administrator.query(`drop owned by ${role} cascade; drop role ${role}`);
  }
  for (const close of closers.splice(0).reverse()) await close();
});

const connected = async (connectionString: string): Promise<pg.Client> => {
  const client = new pg.Client({ connectionString });
  client.on("error", () => undefined);
  await client.connect();
  closers.push(() => client.end());
  return client;
};
const roleNamed = (name: string): string => `${name}_${suffix}`;
const addressAs = (role: string): string => {
  const url = new URL(address);
  url.username = roleNamed(role);
  url.password = PASSWORD;
  return url.href;
};

/** Runs the SQL of a section as an administrator pastes it, with this test's roles, password, schema and database. */
const paste = async (heading: string, schema = "threadloom"): Promise<void> => {
  const database = new URL(address).pathname.slice(1);
  for (const { command } of readSteps(await readFile(PAGE, "utf8"), heading, "sql")) {
    await administrator.query(
      command
        .replaceAll(new RegExp(ROLES.join("|"), "g"), roleNamed)
        .replaceAll(/password '[^']*'/g, `password '${PASSWORD}'`)
        .replaceAll(/\bschema threadloom\b/g, `schema ${schema}`)
        .replaceAll("database app ", `database ${database} `),
    );
  }
};

/** Uses all parts of a server: a run, its states, the store, a cron, a search, and the deletion of a thread. */
const useServerAs = async (role: string, databaseSchema = "threadloom"): Promise<void> => {
  const server = await startTestServer({ connectionString: addressAs(role), databaseSchema });
  try {
    const api = apiOf(server);
    const threadId = await api.aThread({ metadata: { a: 1 } });
    const input = saying("hello");
    expect(
      textsOf((await api.aFinishedRun(threadId, { assistant_id: "two-step", input })).messages),
    ).toHaveLength(3);
    expect((await api.state(threadId)).values.messages).toHaveLength(3);
    const statuses = [
      await api.post(`/threads/${threadId}/state`, { values: { messages: [] } }),
      await api.post("/threads/search", { metadata: { a: 1 } }),
      await api.post(`/threads/${threadId}/runs/crons`, { assistant_id: "two-step", schedule: "@daily" }),
      await api.post("/store/items/search", { namespace_prefix: ["a"] }),
      await api.post("/runs/wait", { assistant_id: "two-step", input }),
      await api.remove(`/threads/${threadId}`),
    ].map(({ status }) => status);
    expect(statuses).toEqual([200, 200, 200, 200, 200, 204]);
    const severe = server.lines.filter((line) => Number((JSON.parse(line) as { level: number }).level) >= 50);
    expect(severe).toEqual([]);
  } finally {
    await server.close();
  }
};
const isRefused = async (client: pg.Client, statement: string): Promise<void> =>
  expect(client.query(statement)).rejects.toMatchObject({ code: "42501" });

test.each(["threadloom", "agents_of_team_1"])(
  "a role that owns only its schema, %s, is enough, and has no more rights",
  async (schema) => {
    await administrator.query("create table public.others (secret text)");
    await paste("## One role, which owns one schema", schema);
    await useServerAs("threadloom_user", schema);
    const client = await connected(addressAs("threadloom_user"));
    await isRefused(client, "select * from public.others");
    await isRefused(client, "create table public.mine (a int)");
    await isRefused(client, "create schema other");
    await isRefused(client, "create database other");
    await isRefused(client, `create role other_${suffix}`);
    await isRefused(client, "copy (select 1) to program 'true'");
    await isRefused(client, "select pg_read_file('/etc/hostname')");
  },
);

test.each(["threadloom", "agents_of_team_1"])(
  "servers may have a role that can't change the tables in %s, which their owner migrates",
  async (schema) => {
    await paste("## Two roles: one owns the tables, one serves", schema);
    const { logger } = listeningLogger();
    const early = startTestServer({
      connectionString: addressAs("threadloom_server"),
      databaseSchema: schema,
    });
    await expect(early).rejects.toThrow("npx threadloom migrate");

    await migrate(addressAs("threadloom_owner"), { schema, logger });
    await useServerAs("threadloom_server", schema);
    const client = await connected(addressAs("threadloom_server"));
    await isRefused(client, `drop table ${schema}.runs`);
    await isRefused(client, `alter table ${schema}.runs add column a int`);
    await isRefused(client, `create table ${schema}.mine (a int)`);

    // An older version's tables, as a new version finds them.
    await administrator.query(
      `delete from ${schema}.migrations where name = (select max(name) from ${schema}.migrations)`,
    );
    const old = startTestServer({ connectionString: addressAs("threadloom_server"), databaseSchema: schema });
    await expect(old).rejects.toThrow("npx threadloom migrate");
  },
);

test("a role without rights in the schema gets an error that names the page with the rights", async () => {
  await administrator.query(`create role ${roleNamed("threadloom_server")} login password '${PASSWORD}'`);
  await migrate(address, { schema: "threadloom", logger: listeningLogger().logger });
  const refused: unknown = await migrate(addressAs("threadloom_server"), {
    schema: "threadloom",
    logger: listeningLogger().logger,
  }).catch((error: unknown) => error);
  expect(String(explainUnusable(refused, address))).toMatch(
    /^StartError: The database .* can't be used: permission denied for schema threadloom; docs\/database-role\.md says/,
  );
});
