import { rmSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { pino } from "pino";
import type { TestProject } from "vitest/node";
import { findPostmaster, type Postmaster } from "../../src/platform/database/embedded/embedded.ts";
import { findPlace } from "../../src/platform/database/embedded/place.ts";
import {
  startEmbeddedPostgres,
  type EmbeddedPostgres,
} from "../../src/platform/database/embedded/embedded.ts";
import { migrate } from "../../src/platform/database/migrate.ts";
import { DEFAULT_SCHEMA } from "../../src/platform/database/schema.ts";
import { databaseNamed } from "./on-server.ts";
import { compilePackage } from "./compiled-package.ts";
import { endServer, removeLeftovers, temporaryFolder, type TemporaryFolder } from "./temporary-folder.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The address of this test run's PostgreSQL for a superuser. */
    serverUrl: string;
    /** The migrated, empty database that `freshDatabase()` copies. */
    templateDatabase: string;
  }
}

/** On a shared server (TEST_DATABASE_URL), databases this old were left by a killed run. */
const LEFTOVER_SECONDS = 6 * 3600;

/** The data are not needed after the run, so they need not survive a power failure. */
const TEST_SETTINGS = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  max_connections: "300",
  // The log is in memory, and copying a database causes a checkpoint anyway.
  max_wal_size: "512MB",
};

const logger = pino({ level: "warn", base: null });

const dropLeftovers = async (client: pg.Client): Promise<void> => {
  const { rows } = await client.query<{ datname: string }>(
    `select datname from pg_database d
     where datname ~ '^threadloom_(test|template)_[0-9]+_'
       and split_part(datname, '_', 3)::bigint < extract(epoch from now()) - $1
       and not exists (select from pg_stat_activity a where a.datid = d.oid)`,
    [LEFTOVER_SECONDS],
  );
  for (const { datname } of rows) await dropDatabase(client, datname);
};

const dropDatabase = async (client: pg.Client, name: string): Promise<void> => {
  await client.query(`drop database if exists ${pg.escapeIdentifier(name)} with (force)`);
};

/**
 * Proving the password costs a client 1 ms, and a test's server opens many connections. Fewer rounds of the same method are enough for a
 * random password.
 */
const cheapenLogins = async (client: pg.Client, serverUrl: string): Promise<void> => {
  const { username, password } = new URL(serverUrl);
  await client.query("set scram_iterations = 1");
  await client.query(
    `alter role ${pg.escapeIdentifier(decodeURIComponent(username))} password ${pg.escapeLiteral(decodeURIComponent(password))}`,
  );
};

/** The last resort for a run that ends without its teardown: stops the server and removes its data. */
const endWithProcess = (folder: string, postmaster: Postmaster): (() => void) => {
  const end = () => {
    endServer(postmaster);
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  const terminate = () => process.exit(143);
  process.on("exit", end);
  process.on("SIGTERM", terminate);
  return () => {
    process.off("exit", end);
    process.off("SIGTERM", terminate);
  };
};

/**
 * Before all tests: one PostgreSQL (embedded, or TEST_DATABASE_URL) with a migrated template database. Everything is removed afterwards,
 * also if tests failed or the process gets a signal.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const external = process.env["TEST_DATABASE_URL"];
  let embedded: EmbeddedPostgres | undefined;
  let folder: TemporaryFolder | undefined;
  let compiled: TemporaryFolder | undefined;
  let client: pg.Client | undefined;
  let forget: (() => void) | undefined;
  const template = `threadloom_template_${Math.floor(Date.now() / 1000)}_${process.pid}`;

  const teardown = async (): Promise<void> => {
    try {
      if (embedded === undefined && client !== undefined) {
        await client.query(`alter database ${template} allow_connections true`).catch(() => undefined);
        await dropDatabase(client, template);
      }
    } finally {
      await client?.end().catch(() => undefined);
      await embedded?.close();
      await folder?.remove();
      await compiled?.remove();
      forget?.();
    }
  };

  try {
    let serverUrl = external;
    if (serverUrl === undefined) await removeLeftovers();
    // In watch mode the source changes while the tests run, so everything runs from source.
    if (!project.vitest.config.watch) {
      compiled = await temporaryFolder();
      await compilePackage(join(compiled.path, "package"));
    }
    if (serverUrl === undefined) {
      // Each test copies a database of 400 files: on a disk that took four times the CPU.
      folder = await temporaryFolder({ inMemory: true });
      const { dataFolder } = folder;
      embedded = await startEmbeddedPostgres({ dataFolder, logger, settings: TEST_SETTINGS });
      serverUrl = embedded.connectionString;
      const postmaster = await findPostmaster(await findPlace(dataFolder));
      if (postmaster !== undefined) forget = endWithProcess(folder.path, postmaster);
    }
    client = new pg.Client({ connectionString: serverUrl });
    client.on("error", () => undefined);
    await client.connect();
    if (external !== undefined) await dropLeftovers(client);
    if (embedded !== undefined) await cheapenLogins(client, serverUrl);
    await client.query(`create database ${template}`);
    await migrate(databaseNamed(serverUrl, template), { schema: DEFAULT_SCHEMA, logger });
    // Connections are forbidden, because a template in use can't be copied.
    await client.query(`alter database ${template} allow_connections false`);
    project.provide("serverUrl", serverUrl);
    project.provide("templateDatabase", template);
  } catch (error) {
    await teardown();
    throw error;
  }
  return teardown;
}
