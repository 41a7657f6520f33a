import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import {
  createCluster,
  readPassword,
  startServer,
  SUPERUSER,
} from "../../../src/platform/database/embedded/embedded.ts";
import { findPlace, makePlace, type Binaries } from "../../../src/platform/database/embedded/place.ts";
import { migrate } from "../../../src/platform/database/migrate.ts";
import { DEFAULT_SCHEMA } from "../../../src/platform/database/schema.ts";
import { databaseNamed } from "../../helpers/on-server.ts";
import type { FreshDatabase } from "../../helpers/database.ts";
import { temporaryFolder } from "../../helpers/temporary-folder.ts";
import { logger } from "./open-store.ts";
import { freePort } from "../../helpers/free-port.ts";

/**
 * Sources of a PostgreSQL with pgvector: TEST_PGVECTOR_URL (of a superuser), the server of this test run if it has the extension, or
 * Debian's installed server, started on a folder of its own.
 */
export type PgvectorSource = { url: string } | { binaries: Binaries };

export interface PgvectorServer {
  url: string;
  /** A migrated, empty database without the extension. */
  freshDatabase(): Promise<FreshDatabase>;
  close(): Promise<void>;
}

/** Runs statements in order over a connection of their own; returns the rows of the last one. */
export const runAt = async (
  connectionString: string,
  ...statements: string[]
): Promise<Record<string, unknown>[]> => {
  const client = new pg.Client({ connectionString });
  client.on("error", () => undefined);
  await client.connect();
  try {
    let rows: Record<string, unknown>[] = [];
    for (const statement of statements) {
      rows = (await client.query<Record<string, unknown>>(statement)).rows;
    }
    return rows;
  } finally {
    await client.end();
  }
};

/** Whether the extension can be created on this server. */
export const offersPgvector = async (url: string): Promise<boolean> =>
  (await runAt(url, "select from pg_available_extensions where name = 'vector'")).length > 0;

/** Clusters use the locale provider `builtin`, which older versions do not know. */
const OLDEST_VERSION = 17;

/** The newest version below `root` with both the server and the extension. */
export const findDebianServer = async (root = "/"): Promise<Binaries | undefined> => {
  const folder = join(root, "usr/lib/postgresql");
  const versions = await readdir(folder).catch(() => []);
  const version = versions
    .sort((one, other) => Number(other) - Number(one))
    .filter((name) => Number(name) >= OLDEST_VERSION)
    .find((name) => existsSync(join(root, `usr/share/postgresql/${name}/extension/vector.control`)));
  if (version === undefined) return undefined;
  const programs = join(folder, version, "bin");
  const binaries = { initdb: join(programs, "initdb"), postgres: join(programs, "postgres") };
  return Object.values(binaries).every((path) => existsSync(path)) ? binaries : undefined;
};

export const findPgvector = async (testServerUrl: string): Promise<PgvectorSource | undefined> => {
  const url = process.env["TEST_PGVECTOR_URL"];
  if (url !== undefined && url !== "") return { url };
  if (await offersPgvector(testServerUrl)) return { url: testServerUrl };
  const binaries = await findDebianServer();
  return binaries === undefined ? undefined : { binaries };
};

const startOwn = async (binaries: Binaries): Promise<{ url: string; close: () => Promise<void> }> => {
  const folder = await temporaryFolder();
  try {
    const place = await findPlace(folder.dataFolder);
    await makePlace(place);
    await createCluster(place, binaries);
    const port = await freePort();
    await startServer({ place, binaries, port, settings: { fsync: "off" } });
    const password = await readPassword(place);
    return {
      url: `postgresql://${SUPERUSER}:${password}@127.0.0.1:${port}/postgres`,
      close: () => folder.remove(),
    };
  } catch (error) {
    await folder.remove();
    throw error;
  }
};

export const openPgvector = async (source: PgvectorSource): Promise<PgvectorServer> => {
  const { url, close } =
    "url" in source ? { url: source.url, close: () => Promise.resolve() } : await startOwn(source.binaries);
  return {
    url,
    close,
    async freshDatabase() {
      const name = `threadloom_test_${Math.floor(Date.now() / 1000)}_${randomBytes(6).toString("hex")}`;
      await runAt(url, `create database ${name}`);
      const connectionString = databaseNamed(url, name);
      await migrate(connectionString, { schema: DEFAULT_SCHEMA, logger });
      return {
        connectionString,
        drop: async () => void (await runAt(url, `drop database if exists ${name} with (force)`)),
      };
    },
  };
};
