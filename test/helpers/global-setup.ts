import { rmSync } from "node:fs";
import { chmod, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import pg from "pg";
import { pino } from "pino";
import type { TestProject } from "vitest/node";
import { findPostmaster } from "../../src/database/embedded-cluster.ts";
import { findPlace } from "../../src/database/embedded-place.ts";
import { startEmbeddedPostgres, type EmbeddedPostgres } from "../../src/database/embedded.ts";
import { migrate } from "../../src/database/migrate.ts";
import { databaseNamed } from "./database.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** A superuser's way to the PostgreSQL of this test run. */
    serverUrl: string;
    /** The migrated, empty database that `freshDatabase()` copies. */
    templateDatabase: string;
  }
}

const FOLDER_PREFIX = "threadloom-test-";
/** On a server that isn't ours alone (TEST_DATABASE_URL), databases this old were left by a killed run. */
const LEFTOVER_SECONDS = 6 * 3600;

/** Data that nobody needs after the run need not survive a power failure. */
const TEST_SETTINGS = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  max_connections: "300",
  max_wal_size: "4GB",
};

const logger = pino({ level: "warn", base: null });

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
};

/** Ends the server of a test run at once and removes its data. */
const discard = async (folder: string): Promise<void> => {
  const place = await findPlace(folder);
  const postmaster = await findPostmaster(place);
  if (postmaster !== undefined) process.kill(postmaster.pid, "SIGQUIT");
  while ((await findPostmaster(place)) !== undefined) await new Promise((resolve) => setTimeout(resolve, 10));
  await rm(dirname(place.folder), { recursive: true, force: true, maxRetries: 5 });
  await rm(folder, { recursive: true, force: true });
};

/** Servers of runs whose process was killed before it could stop them. */
const discardLeftovers = async (): Promise<void> => {
  for (const name of await readdir(tmpdir())) {
    const owner = new RegExp(`^${FOLDER_PREFIX}(\\d+)-`).exec(name)?.[1];
    if (owner !== undefined && !isAlive(Number(owner))) await discard(join(tmpdir(), name));
  }
};

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

/** The last resort, for a run that ends without its teardown: stops the server and removes its data. */
const endWithProcess = (folder: string, serverPid: number): (() => void) => {
  const end = () => {
    try {
      process.kill(serverPid, "SIGQUIT");
    } catch {
      // It is gone already.
    }
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
 * Before all tests: one PostgreSQL (embedded, or TEST_DATABASE_URL) with a migrated template database.
 * Afterwards, also when tests failed or the process is told to end, nothing of it is left.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const external = process.env["TEST_DATABASE_URL"];
  let embedded: EmbeddedPostgres | undefined;
  let folder: string | undefined;
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
      if (folder !== undefined) await discard(folder);
      forget?.();
    }
  };

  try {
    let serverUrl = external;
    if (serverUrl === undefined) {
      await discardLeftovers();
      folder = await mkdtemp(join(tmpdir(), `${FOLDER_PREFIX}${process.pid}-`));
      // As root the server runs as another user, who has to get through.
      if (process.getuid?.() === 0) await chmod(folder, 0o755);
      embedded = await startEmbeddedPostgres({ dataFolder: folder, logger, settings: TEST_SETTINGS });
      serverUrl = embedded.connectionString;
      const postmaster = await findPostmaster(await findPlace(folder));
      if (postmaster !== undefined) forget = endWithProcess(embedded.dataFolder, postmaster.pid);
    }
    client = new pg.Client({ connectionString: serverUrl });
    client.on("error", () => undefined);
    await client.connect();
    if (external !== undefined) await dropLeftovers(client);
    await client.query(`create database ${template}`);
    await migrate(databaseNamed(serverUrl, template), logger);
    // Nobody may connect to it any more: a template in use can't be copied.
    await client.query(`alter database ${template} allow_connections false`);
    project.provide("serverUrl", serverUrl);
    project.provide("templateDatabase", template);
  } catch (error) {
    await teardown();
    throw error;
  }
  return teardown;
}
