import { join } from "node:path";
import pg from "pg";
import { clockAhead, CLOCKS_DIFFER_MS } from "../../platform/database/clock.ts";
import { readMigrationStatus } from "../../platform/database/migrate.ts";
import { hasTable } from "../../platform/database/migrate.ts";
import { inSchema } from "../../platform/database/schema.ts";
import { statement } from "../../platform/database/statement.ts";
import { hasCluster } from "../../platform/database/embedded/place.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { databaseName } from "../banner.ts";
import { cipherOf, reachOwnDatabase, type DatabasePlace } from "../own-database.ts";
import { checkObjectStore, DATABASE_ADVICE, fail, info, ok, tried, warn, type Check } from "./checks.ts";

/** Older versions are untested. */
const MAJOR_AT_LEAST = 15;
const CONNECT_MS = 10_000;

const checkVersion = async (client: pg.Client, where: string): Promise<Check> => {
  const { rows } = await client.query<{ version: string; major: number }>(
    "select current_setting('server_version') as version, current_setting('server_version_num')::int / 10000 as major",
  );
  const { version = "", major = 0 } = rows[0] ?? {};
  const text = `PostgreSQL ${version}: ${where}`;
  return major < MAJOR_AT_LEAST
    ? warn("Database", text, `Use PostgreSQL ${MAJOR_AT_LEAST} or newer; older versions are untested.`)
    : ok("Database", text);
};

const checkClock = async (client: pg.Client): Promise<Check> => {
  const query = async <Row>(text: string) => (await client.query(text)).rows as Row[];
  const differs = Math.abs(await clockAhead({ query }));
  const text = `${(differs / 1_000).toFixed(1)} s between this machine and the database`;
  const advice = "Synchronize both clocks with NTP. Otherwise times and the order of lists are wrong.";
  return differs > CLOCKS_DIFFER_MS ? warn("Clock", text, advice) : ok("Clock", text);
};

const RIGHTS = statement(
  { schema: "text" },
  (sql) => `select current_user as role,
            (select rolsuper from pg_roles where rolname = current_user) as "isSuperuser",
            case when exists (select from pg_namespace where nspname = ${sql.schema})
                 then has_schema_privilege(${sql.schema}, 'create')
                 else has_database_privilege(current_database(), 'create') end as "mayCreate",
            array(select c.relname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
                   where n.nspname = ${sql.schema} and c.relkind in ('r', 'p') and c.relname <> 'migrations'
                     and not (has_schema_privilege(n.oid, 'usage')
                       and has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
                       and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete'))
                   order by 1) as denied`,
);

interface Rights {
  role: string;
  isSuperuser: boolean;
  mayCreate: boolean;
  denied: string[];
}

/** The role of the embedded PostgreSQL is a superuser, and only this server reaches it. */
const checkRights = async (
  client: pg.Client,
  { schema, url }: DatabasePlace,
  isPending: boolean,
): Promise<Check> => {
  const { rows } = await client.query<Rights>(RIGHTS.compile({ schema }));
  const { role, isSuperuser, mayCreate, denied } = rows[0]!;
  const advice = "Let an administrator run what docs/database-role.md says.";
  if (isSuperuser && url !== undefined)
    return warn(
      "Rights",
      `${role} is a superuser with access to all databases and files of this PostgreSQL`,
      "Create a role for the server: see docs/database-role.md.",
    );
  const may = (what: string): Check => fail("Rights", `${role} may not ${what}`, advice);
  if (denied.length > 0) return may(`read and write ${denied.slice(0, 3).join(", ")} in ${schema}`);
  if (isPending && !mayCreate) return may(`make the tables of the schema ${schema}`);
  return ok("Rights", `${role} may do what a server does in the schema ${schema}`);
};

const MIGRATIONS = "Migrations";

const checkMigrations = async (client: pg.Client, schema: string): Promise<Check> => {
  const states = await readMigrationStatus(client, schema);
  const named = (state: string): string[] =>
    states.filter((one) => one.state === state).map(({ name }) => name);
  const [pending, [edited], unknown] = [named("pending"), named("edited"), named("unknown").at(-1)];
  if (unknown !== undefined)
    return fail(MIGRATIONS, `${unknown} is of a newer version`, "Start that newer version.");
  if (edited !== undefined)
    return fail(
      MIGRATIONS,
      `${edited} differs from the migration that was applied`,
      "Reinstall the package.",
    );
  return pending.length > 0
    ? warn(
        MIGRATIONS,
        `${pending.length} of ${states.length} are pending`,
        "Start the server, or run 'threadloom migrate' as the owner of the tables.",
      )
    : ok(MIGRATIONS, `${states.length} applied, none pending`);
};

const checkEncryption = async (client: pg.Client, { schema, environment }: DatabasePlace): Promise<Check> => {
  const { rows } = await client.query<{ key_id: string }>(
    inSchema(schema)("select key_id from threadloom.encryption_keys order by created_at"),
  );
  const cipher = cipherOf(environment);
  const lacking = rows.filter(({ key_id: id }) => cipher?.keyIds.includes(id) !== true);
  if (lacking.length > 0)
    return fail(
      "Encryption",
      lacking.map(({ key_id: id }) => `the key '${id}' is not configured`).join("\n"),
      "Add the key to LANGGRAPH_AES_KEY, after the first key. If no row needs it ('threadloom encryption status'), run " +
        "'threadloom encryption forget'.",
    );
  return ok(
    "Encryption",
    cipher === undefined ? "off: LANGGRAPH_AES_KEY is not set" : `the key '${cipher.keyId}' encrypts`,
  );
};

/** Without the password: people paste what `doctor` prints. */
const embeddedAddress = (connectionString: string, dataFolder: string): Check => {
  const url = new URL(connectionString);
  url.password = "";
  const file = join(dataFolder, "postgres/cluster/password");
  return info("Address", `${url.href} while a server runs; its password is in ${file}`);
};

/** Changes nothing. Returns whether the database has API keys; undefined if it can't be used. */
export async function* checkDatabase(
  place: DatabasePlace,
  logger: Logger,
): AsyncGenerator<Check, boolean | undefined> {
  const { url, dataFolder, schema } = place;
  if (url === undefined && !(await hasCluster(dataFolder))) {
    yield ok("Database", `embedded; the first start makes it in ${dataFolder}`);
    return false;
  }
  const where = url === undefined ? `embedded, in ${dataFolder}` : databaseName(url);
  let hasStoredKeys = false;
  const further: (Check | undefined)[] = [];
  const advice = url === undefined ? "Look into postgres.log in that folder." : DATABASE_ADVICE;
  const check = await tried("Database", advice, async () => {
    const { connectionString, dataFolder: folder, close } = await reachOwnDatabase(place, logger);
    const client = new pg.Client({
      connectionString,
      application_name: "threadloom doctor",
      connectionTimeoutMillis: CONNECT_MS,
    });
    client.on("error", () => undefined);
    try {
      await client.connect();
      const migrations = await checkMigrations(client, schema);
      further.push(
        await checkClock(client),
        await checkRights(client, place, migrations.level === "warn"),
        migrations,
        (await hasTable(client, schema, "encryption_keys"))
          ? await checkEncryption(client, place)
          : undefined,
        folder === undefined ? undefined : embeddedAddress(connectionString, folder),
        await checkObjectStore(place.environment),
      );
      if (await hasTable(client, schema, "api_keys")) {
        const stored = await client.query(inSchema(schema)("select from threadloom.api_keys limit 1"));
        hasStoredKeys = stored.rowCount === 1;
      }
      return await checkVersion(client, where);
    } finally {
      await client.end().catch(() => undefined);
      await close();
    }
  });
  const isUsable = check.level !== "fail";
  yield isUsable ? check : { ...check, text: `${where}: ${check.text}` };
  for (const one of further) if (one !== undefined) yield one;
  return isUsable ? hasStoredKeys : undefined;
}
