import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { kill } from "node:process";
import pg from "pg";
import {
  createCluster,
  findPostmaster,
  readPassword,
  startServer,
  SUPERUSER,
} from "../../src/platform/database/embedded/embedded.ts";
import { findBinaries, findPlace, makePlace } from "../../src/platform/database/embedded/place.ts";
import { eventually } from "../helpers/conditions.ts";
import { temporaryFolder } from "../helpers/temporary-folder.ts";

const SETTINGS = { fsync: "off", full_page_writes: "off", max_connections: "300" };
/** The port must stay the same after each restart. */
const PORT_FROM = 20_000;
const PORTS = 10_000;

/** The database of the fault tests, which stop it hard and start it again. */
export interface TestDatabase {
  start(): Promise<void>;
  /** Like a power failure: without notice or final writes. */
  stopHard(): Promise<void>;
  /** Returns the address of a new database. */
  create(name: string): Promise<string>;
  close(): Promise<void>;
}

/** A Postgres of the fault tests. */
export const startTestDatabase = async () => {
  const folder = await temporaryFolder();
  const place = await findPlace(folder.dataFolder);
  await makePlace(place);
  const binaries = await findBinaries(place);
  await createCluster(place, binaries);
  const password = await readPassword(place);
  const port = PORT_FROM + Math.floor(Math.random() * PORTS);
  const start = (): Promise<void> => startServer({ place, binaries, port, settings: SETTINGS });
  const addressOf = (name: string): string =>
    `postgresql://${SUPERUSER}:${password}@127.0.0.1:${port}/${name}`;
  const logFile = join(place.folder, "postgres.log");
  await start();
  return {
    start,
    async stopHard(): Promise<void> {
      const postmaster = await findPostmaster(place);
      if (postmaster === undefined) return;
      kill(postmaster.pid, "SIGQUIT");
      await eventually("Postgres is gone", async () => (await findPostmaster(place)) === undefined);
    },
    async create(name: string): Promise<string> {
      const client = new pg.Client({ connectionString: addressOf("postgres") });
      await client.connect();
      await client.query(`create database ${pg.escapeIdentifier(name)}`);
      await client.end();
      return addressOf(name);
    },
    url: addressOf,
    async logSize(): Promise<number> {
      return (await stat(logFile)).size;
    },
    /** The server's log after this many bytes. */
    async logFrom(bytes: number): Promise<string> {
      return (await readFile(logFile)).subarray(bytes).toString("utf8");
    },
    close: () => folder.remove(),
  };
};
