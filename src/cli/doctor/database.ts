import { statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import pg from "pg";
import { clockAhead, CLOCKS_DIFFER_MS } from "../../platform/database/clock.ts";
import { readMigrationStatus } from "../../platform/database/migration-status.ts";
import { hasTable } from "../../platform/database/has-table.ts";
import { inSchema } from "../../platform/database/schema.ts";
import { statement } from "../../platform/database/statement.ts";
import { hasCluster } from "../../platform/database/embedded/place.ts";
import { isUnusable } from "../../platform/database/passing-faults.ts";
import { sqlState, StartError } from "../../platform/domain/errors.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { databaseName } from "../banner.ts";
import { cipherOf, reachOwnDatabase, type DatabasePlace } from "../own-database.ts";
import { checkObjectStore, fail, info, ok, warn, type Check } from "./checks.ts";
import { checkEncryption } from "./encryption.ts";

/** Older versions are untested. */
const MAJOR_AT_LEAST = 15;
const CONNECT_MS = 10_000;

interface DatabaseFindings {
  checks: Check[];
  hasStoredKeys: boolean;
}

const checkVersion = async (client: pg.Client, where: string): Promise<Check> => {
  const { rows } = await client.query<{ version: string; major: number }>(
    "select current_setting('server_version') as version, current_setting('server_version_num')::int / 10000 as major",
  );
  const { version = "", major = 0 } = rows[0] ?? {};
  return major < MAJOR_AT_LEAST
    ? warn(
        "Database",
        `PostgreSQL ${version}: ${where}`,
        `Use PostgreSQL ${MAJOR_AT_LEAST} or newer; older versions are untested.`,
      )
    : ok("Database", `PostgreSQL ${version}: ${where}`);
};

const checkClock = async (client: pg.Client): Promise<Check> => {
  const query = async <Row>(text: string) => (await client.query(text)).rows as Row[];
  const differs = Math.abs(await clockAhead({ query }));
  const text = `${(differs / 1_000).toFixed(1)} s between this machine and the database`;
  return differs > CLOCKS_DIFFER_MS
    ? warn(
        "Clock",
        text,
        "Synchronize both clocks with NTP. Otherwise times and the order of lists are wrong.",
      )
    : ok("Clock", text);
};

interface RightsNeeded {
  schema: string;
  needsOwner: boolean;
  /** The role of the embedded PostgreSQL is a superuser, and only this server reaches it. */
  isEmbedded: boolean;
}

const RIGHTS = statement(
  { schema: "text" },
  (sql) => `select current_user as role,
            (select rolsuper from pg_roles where rolname = current_user) as is_superuser,
            exists (select from pg_namespace where nspname = ${sql.schema}) as found,
            case when exists (select from pg_namespace where nspname = ${sql.schema})
                 then has_schema_privilege(${sql.schema}, 'create')
                 else has_database_privilege(current_database(), 'create') end as may_create,
            array(select c.relname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
                   where n.nspname = ${sql.schema} and c.relkind in ('r', 'p') and c.relname <> 'migrations'
                     and not (has_schema_privilege(n.oid, 'usage')
                       and has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
                       and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete'))
                   order by 1) as denied`,
);

const checkRights = async (
  client: pg.Client,
  { schema, needsOwner, isEmbedded }: RightsNeeded,
): Promise<Check> => {
  const { rows } = await client.query<{
    role: string;
    is_superuser: boolean;
    found: boolean;
    may_create: boolean;
    denied: string[];
  }>(RIGHTS.compile({ schema }));
  const {
    role = "",
    is_superuser: isSuperuser = false,
    found = false,
    may_create: mayCreate = false,
    denied = [],
  } = rows[0] ?? {};
  const advice = "Let an administrator run what docs/database-role.md says.";
  if (isSuperuser && !isEmbedded)
    return warn(
      "Rights",
      `${role} is a superuser with access to all databases and files of this PostgreSQL`,
      "Create a role for the server: see docs/database-role.md.",
    );
  if (denied.length > 0)
    return fail(
      "Rights",
      `${role} may not read and write ${denied.slice(0, 3).join(", ")} in ${schema}`,
      advice,
    );
  if (needsOwner && !mayCreate)
    return fail("Rights", `${role} may not make ${found ? "tables in" : "the schema"} ${schema}`, advice);
  return ok("Rights", `${role} may do what a server does in the schema ${schema}`);
};

const checkMigrations = async (
  client: pg.Client,
  schema: string,
): Promise<{ check: Check; isPending: boolean }> => {
  const states = await readMigrationStatus(client, schema);
  const named = (state: string): string[] =>
    states.filter((one) => one.state === state).map(({ name }) => name);
  const [pending, edited, unknown] = [named("pending"), named("edited"), named("unknown")];
  const isPending = pending.length > 0;
  const name = "Migrations";
  if (unknown.length > 0)
    return {
      isPending,
      check: fail(name, `${unknown.at(-1)} is of a newer version`, "Start that newer version."),
    };
  if (edited.length > 0)
    return {
      isPending,
      check: fail(name, `${edited[0]} differs from the migration that was applied`, "Reinstall the package."),
    };
  if (isPending) {
    const advice = "Start the server, or run 'threadloom migrate' as the owner of the tables.";
    return { isPending, check: warn(name, `${pending.length} of ${states.length} are pending`, advice) };
  }
  return { isPending, check: ok(name, `${states.length} applied, none pending`) };
};

const check = async (
  client: pg.Client,
  { schema, url, environment }: DatabasePlace,
  where: string,
): Promise<DatabaseFindings> => {
  const version = await checkVersion(client, where);
  const { check: migrations, isPending } = await checkMigrations(client, schema);
  const checks = [
    version,
    await checkClock(client),
    await checkRights(client, { schema, needsOwner: isPending, isEmbedded: url === undefined }),
    migrations,
  ];
  if (await hasTable(client, schema, "encryption_keys"))
    checks.push(await checkEncryption(client, schema, cipherOf(environment)));
  if (!(await hasTable(client, schema, "api_keys"))) return { checks, hasStoredKeys: false };
  const stored = await client.query(inSchema(schema)("select from threadloom.api_keys limit 1"));
  return { checks, hasStoredKeys: stored.rowCount === 1 };
};

const GIGABYTE = 1_000_000_000;
const BYTES_AT_LEAST = 0.1 * GIGABYTE;
const BYTES_WISHED = GIGABYTE;

const checkDisk = async (folder: string): Promise<Check> => {
  const found = await statfs(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT" || dirname(folder) === folder) throw error;
    return undefined;
  });
  if (found === undefined) return await checkDisk(dirname(folder));
  const free = found.bavail * found.bsize;
  const text = `${(free / GIGABYTE).toFixed(1)} GB are free for ${folder}`;
  const advice = "Make room, or choose another folder with --data.";
  if (free < BYTES_AT_LEAST) return fail("Disk", text, advice);
  return free < BYTES_WISHED ? warn("Disk", text, advice) : ok("Disk", text);
};

/** Without the password: people paste what `doctor` prints. */
const embeddedAddress = (connectionString: string, dataFolder: string): Check => {
  const url = new URL(connectionString);
  url.password = "";
  const file = join(dataFolder, "postgres/cluster/password");
  return info("Address", `${url.href} while a server runs; its password is in ${file}`);
};

/** Changes nothing. */
export const checkDatabase = async (place: DatabasePlace, logger: Logger): Promise<DatabaseFindings> => {
  const { url, dataFolder } = place;
  const disk = url === undefined ? [await checkDisk(dataFolder)] : [];
  if (url === undefined && !(await hasCluster(dataFolder))) {
    const text = `embedded; the first start makes it in ${dataFolder}`;
    return { checks: [ok("Database", text), ...disk], hasStoredKeys: false };
  }
  const where = url === undefined ? `embedded, in ${dataFolder}` : databaseName(url);
  try {
    const reached = await reachOwnDatabase(place, logger);
    const client = new pg.Client({
      connectionString: reached.connectionString,
      application_name: "threadloom doctor",
      connectionTimeoutMillis: CONNECT_MS,
    });
    client.on("error", () => undefined);
    try {
      await client.connect();
      const found = await check(client, place, where);
      const { connectionString, dataFolder: folder } = reached;
      const further = [
        folder === undefined ? undefined : embeddedAddress(connectionString, folder),
        await checkObjectStore(place.environment),
      ].filter((one) => one !== undefined);
      return { ...found, checks: [...found.checks, ...further, ...disk] };
    } finally {
      await client.end().catch(() => undefined);
      await reached.close();
    }
  } catch (error) {
    if (!isUnusable(error) && !(error instanceof StartError) && sqlState(error) === undefined) throw error;
    const reason = (error as Error).message || (sqlState(error) ?? "no answer");
    const advice =
      url === undefined
        ? "Look into postgres.log in that folder."
        : "Check that the database runs, and that the address, user and password in DATABASE_URL are right.";
    return { checks: [fail("Database", `${where}: ${reason}`, advice), ...disk], hasStoredKeys: false };
  }
};
