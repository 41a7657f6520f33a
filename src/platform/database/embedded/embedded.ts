import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { dirname } from "node:path";
import { execPath } from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { isPassing, retryPassing } from "../passing-faults.ts";
import { sqlState, StartError } from "../../domain/errors.ts";
import type { Logger } from "../../lib/logger.ts";
import {
  createCluster,
  findPostmaster,
  readPassword,
  readPort,
  ServerDidNotStart,
  startServer,
  stopServer,
  SUPERUSER,
} from "./cluster.ts";
import { findBinaries, findPlace, hasCluster, makePlace, type Binaries, type ClusterPlace } from "./place.ts";

export interface EmbeddedPostgresOptions {
  /** An absolute path. Created if missing. */
  dataFolder: string;
  logger: Logger;
  /** E.g. `{ fsync: "off" }` in tests. */
  settings?: Readonly<Record<string, string>>;
}

export interface EmbeddedPostgres {
  connectionString: string;
  /** As root, another folder if the server's user can't reach the wanted one. */
  dataFolder: string;
  /** The last process that uses the server stops it. */
  close(): Promise<void>;
  /** A child process does the work of `close`. */
  abandon(): void;
}

const DATABASE = "threadloom";
const APPLICATION_NAME = "threadloom embedded";
/** Every user of the server shares this lock. A process that gets the lock exclusively may stop the server. */
const USER_LOCK = 7_448_120_263;
const ATTEMPTS_AT_MOST = 50;
const RETRY_MS = 100;
/** Longer than a stop or a crash recovery takes. */
const REGISTER_MS = 60_000;
const NO_SUCH_DATABASE = "3D000";
/**
 * A closed connection can stay in pg_stat_activity for more than a second (load 30 on two cores), and would count as a
 * user.
 */
const LEAVING_MS = 4_000;
const ABANDONED_MS = 10_000;
const END_ENTRY = fileURLToPath(new URL("./end-entry.js", import.meta.url));

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });

interface Address {
  port: number;
  password: string;
  database: string;
}

const urlOf = ({ port, password, database }: Address): string =>
  `postgresql://${SUPERUSER}:${password}@127.0.0.1:${port}/${database}`;

const connectTo = async (address: Address): Promise<pg.Client> => {
  const client = new pg.Client({ connectionString: urlOf(address), application_name: APPLICATION_NAME });
  // Without a listener a lost connection ends the process.
  client.on("error", () => undefined);
  await client.connect();
  return client;
};

/** True: new processes now wait for the stop. */
const isLast = async (keeper: pg.Client): Promise<boolean> => {
  // Two processes that close at once must not block each other.
  await keeper.query(`select pg_advisory_unlock_shared(${USER_LOCK})`);
  const lock = await keeper.query<{ alone: boolean }>(`select pg_try_advisory_lock(${USER_LOCK}) as alone`);
  if (lock.rows[0]?.alone !== true) return false;
  for (const end = Date.now() + LEAVING_MS; ; await delay(RETRY_MS / 10)) {
    // A process may also use the server through DATABASE_URL.
    const others = await keeper.query(
      "select from pg_stat_activity where application_name like 'threadloom%' and pid <> pg_backend_pid() limit 1",
    );
    if (others.rowCount === 0) return true;
    if (Date.now() > end) return false;
  }
};

/** For a process that exited without closing. Does nothing if another process uses the server. */
export const stopAbandoned = async (folder: string): Promise<void> => {
  const place: ClusterPlace = { folder, user: undefined };
  const password = await readPassword(place);
  for (const end = Date.now() + ABANDONED_MS; Date.now() < end; await delay(RETRY_MS)) {
    const running = await findPostmaster(place);
    if (running === undefined) return;
    let client: pg.Client | undefined;
    try {
      client = await connectTo({ port: running.port, password, database: DATABASE });
      if (await isLast(client)) return await stopServer(place);
    } catch (error) {
      if (!isPassing(error)) throw error;
    } finally {
      await client?.end().catch(() => undefined);
    }
  }
};

interface Cluster {
  place: ClusterPlace;
  binaries: Binaries;
  settings: Readonly<Record<string, string>>;
}

/** `fixedPort`: the port that clients already know. */
const ensureServer = async (
  { place, binaries, settings }: Cluster,
  fixedPort: number | undefined,
): Promise<number> => {
  let port = fixedPort ?? (await readPort(place)) ?? (await freePort());
  for (let attempt = 1; ; attempt += 1) {
    const running = await findPostmaster(place);
    if (running?.ready) return running.port;
    try {
      if (running === undefined) {
        await startServer({ place, binaries, port, settings });
        return port;
      }
    } catch (error) {
      if (!(error instanceof ServerDidNotStart) || attempt >= ATTEMPTS_AT_MOST) throw error;
      if (error.portTaken && fixedPort === undefined) port = await freePort();
      else if (!error.clusterTaken && !error.portTaken) throw error;
    }
    if (attempt >= ATTEMPTS_AT_MOST * 10) {
      throw new StartError(
        `The PostgreSQL server of ${place.folder} (process ${running?.pid}) does not get ready.`,
      );
    }
    await delay(RETRY_MS / (running === undefined ? 1 : 5));
  }
};

/**
 * Starts a server, or joins the cluster's running server (docs/decisions/001-embedded-postgres.md). Throws StartError
 * with the last lines of the server's log.
 */
export const startEmbeddedPostgres = async (options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> => {
  const { logger, settings = {} } = options;
  const place = await findPlace(options.dataFolder);
  await makePlace(place);
  const binaries = await findBinaries(place);
  // Takes some of the seconds of a first start, which would otherwise be silent.
  if (!(await hasCluster(options.dataFolder)))
    logger.info(`making a database in ${options.dataFolder}, once`);
  await createCluster(place, binaries);
  const password = await readPassword(place);
  let closed = false;
  let isDone = false;

  const urlFor = (port: number, database: string) => urlOf({ port, password, database });

  const connect = (port: number, database: string): Promise<pg.Client> =>
    connectTo({ port, password, database });

  const createDatabase = async (port: number): Promise<void> => {
    const client = await connect(port, "postgres");
    try {
      await client.query(`create database ${DATABASE}`);
    } catch (error) {
      if (!["42P04", "23505"].includes(sqlState(error) ?? "")) throw error; // another process was faster
    } finally {
      await client.end();
    }
  };

  const register = async (fixedPort?: number): Promise<{ keeper: pg.Client; port: number }> => {
    const tryToRegister = async (): Promise<{ keeper: pg.Client; port: number }> => {
      const port = await ensureServer({ place, binaries, settings }, fixedPort);
      let keeper: pg.Client | undefined;
      try {
        keeper = await connect(port, DATABASE);
        await keeper.query(`select pg_advisory_lock_shared(${USER_LOCK})`);
        return { keeper, port };
      } catch (error) {
        await keeper?.end().catch(() => undefined);
        if (sqlState(error) !== NO_SUCH_DATABASE) throw error;
        await createDatabase(port);
        return await tryToRegister();
      }
    };
    // The fault passes when another process has stopped the server.
    return await retryPassing(tryToRegister, { forMs: REGISTER_MS });
  };

  const first = await register();
  let keeper = first.keeper;
  let returning: Promise<void> | undefined;

  const watch = (): void => {
    keeper.once("end", () => {
      if (!closed) returning = comeBack();
    });
  };
  /** Runs after a backend or the server was killed. */
  const comeBack = async (): Promise<void> => {
    logger.warn("the connection to the embedded PostgreSQL was lost");
    while (!closed) {
      try {
        keeper = (await register(first.port)).keeper;
        watch();
        return;
      } catch (error) {
        logger.error({ err: error }, "the embedded PostgreSQL does not come back");
        await delay(RETRY_MS * 10);
      }
    }
  };
  watch();

  const closeServer = async (): Promise<void> => {
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      try {
        if (await isLast(keeper)) await stopServer(place);
        else logger.info("the embedded PostgreSQL goes on: another Threadloom process is connected to it");
        return;
      } catch (error) {
        if (!isPassing(error)) throw error;
        const running = await findPostmaster(place); // only our connection may be lost
        if (!running?.ready) return;
        keeper = await connect(running.port, DATABASE);
      }
    }
  };

  return {
    connectionString: urlFor(first.port, DATABASE),
    dataFolder: dirname(place.folder),
    abandon() {
      if (isDone) return;
      spawn(execPath, [END_ENTRY, place.folder], {
        cwd: place.folder,
        detached: true,
        stdio: "ignore",
      });
    },
    async close() {
      if (closed) return;
      closed = true;
      await returning;
      try {
        await closeServer();
        isDone = true;
      } finally {
        await keeper.end().catch(() => undefined);
      }
    },
  };
};
