import { execFile, spawn } from "node:child_process";
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { link, open, readFile, readlink, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { kill } from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import pg from "pg";
import { sqlState, StartError } from "../../domain/errors.ts";
import type { Logger } from "../../lib/logger.ts";
import { isPassing, retryPassing } from "../passing-faults.ts";
import {
  buildAside,
  findBinaries,
  findPlace,
  give,
  hasCluster,
  makePlace,
  type Binaries,
  type ClusterPlace,
} from "./place.ts";

/**
 * Needs no lock file: a new cluster is built aside and renamed, so one process wins. `postmaster.pid` keeps a second
 * server off the cluster.
 *
 *   <place.folder>/cluster/data        the cluster (PGDATA)
 *   <place.folder>/cluster/password    its superuser's password, mode 600
 *   <place.folder>/postgres.log
 */

export const SUPERUSER = "threadloom";

const POLL_MS = 10;
const START_SECONDS = 120; // crash recovery of a large cluster takes time
const STOP_SECONDS = 30;
const LOG_BYTES_AT_MOST = 10_000_000;
const LOG_LINES_SHOWN = 12;

const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "", // a socket's path has at most 107 bytes; a data folder's may be longer
  max_connections: "100",
  shared_buffers: "128MB",
  wal_level: "minimal", // an embedded server has no replicas
  max_wal_senders: "0",
  jit: "off", // statements are short: compiling costs more than it gains
  timezone: "UTC",
  log_timezone: "UTC",
  cluster_name: "threadloom",
};

/** PG* and LC_* variables would change PostgreSQL's behaviour. */
const ENVIRONMENT = { LC_ALL: "C", TZ: "UTC", PATH: "/usr/local/bin:/usr/bin:/bin" };

const run = promisify(execFile);

export const dataOf = (place: ClusterPlace): string => join(place.folder, "cluster/data");
const logOf = (place: ClusterPlace): string => join(place.folder, "postgres.log");

const isAlive = (pid: number): boolean => {
  try {
    return kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
};

/** Several processes may call this at once. */
export const createCluster = async (place: ClusterPlace, binaries: Binaries): Promise<void> => {
  if ((await stat(join(dataOf(place), "PG_VERSION")).catch(() => undefined)) !== undefined) return;
  try {
    await buildAside(join(place.folder, "cluster"), async (aside) => {
      const passwordFile = join(aside, "password");
      await writeFile(passwordFile, randomBytes(32).toString("hex"), { mode: 0o600 });
      await give(aside, place.user);
      await give(passwordFile, place.user);
      await run(
        binaries.initdb,
        [
          `--pgdata=${join(aside, "data")}`,
          `--username=${SUPERUSER}`,
          `--pwfile=${passwordFile}`,
          "--auth=scram-sha-256",
          "--encoding=UTF8",
          // Otherwise the order of text depends on the system's C library.
          "--locale=C",
          "--locale-provider=builtin",
          "--builtin-locale=C.UTF-8",
          "--no-instructions",
        ],
        { ...place.user, cwd: aside, env: ENVIRONMENT },
      );
    });
  } catch (error) {
    const output = (error as { stderr?: string }).stderr?.trim() ?? "";
    throw new StartError(
      `The embedded PostgreSQL can't create its database cluster in ${place.folder}: ` +
        `${output === "" ? (error as Error).message : output}`,
      { cause: error },
    );
  }
};

export const readPassword = async (place: ClusterPlace): Promise<string> =>
  (await readFile(join(place.folder, "cluster/password"), "utf8")).trim();

/** The same for each start, so that other processes find a server that was started again. Below ephemeral ports. */
const usualPort = ({ folder }: ClusterPlace): number =>
  20_000 + (createHash("sha256").update(folder).digest().readUInt32BE() % 12_000);

export interface Postmaster {
  pid: number;
  port: number;
  ready: boolean;
}

const readPostmasterFile = async (place: ClusterPlace): Promise<Postmaster | undefined> => {
  const text = await readFile(join(dataOf(place), "postmaster.pid"), "utf8").catch(() => "");
  const lines = text.split("\n").map((line) => line.trim());
  const pid = Number(lines[0]);
  if (!Number.isInteger(pid) || pid <= 0) return undefined;
  return { pid, port: Number(lines[3]), ready: lines[7] === "ready" };
};

/** Another program may have the same process id by now. */
const isPostmaster = async (pid: number, place: ClusterPlace): Promise<boolean> => {
  if (!isAlive(pid)) return false;
  const data = await realpath(dataOf(place)).catch(() => dataOf(place));
  const hasProc = await stat("/proc/self").catch(() => undefined);
  // A postmaster works in its data folder. A zombie has no working folder.
  if (hasProc !== undefined) return (await readlink(`/proc/${pid}/cwd`).catch(() => "")) === data;
  const { stdout } = await run("ps", ["-o", "command=", "-p", String(pid)]).catch(() => ({ stdout: "" }));
  return stdout.includes(data) || stdout.includes(dataOf(place));
};

export const findPostmaster = async (place: ClusterPlace): Promise<Postmaster | undefined> => {
  const postmaster = await readPostmasterFile(place);
  return postmaster !== undefined && (await isPostmaster(postmaster.pid, place)) ? postmaster : undefined;
};

/**
 * After a restart of a container another program may have the old process id. PostgreSQL would take that program for a
 * server and refuse to start.
 */
const removeStalePostmasterFile = async (place: ClusterPlace): Promise<void> => {
  const stale = await readPostmasterFile(place);
  if (stale === undefined || !isAlive(stale.pid) || (await isPostmaster(stale.pid, place))) return;
  const file = join(dataOf(place), "postmaster.pid");
  const aside = `${file}.${randomUUID()}`;
  await rename(file, aside).catch(() => undefined);
  const moved = await readFile(aside, "utf8").catch(() => "");
  // Another process has started a server meanwhile.
  if (Number(moved.split("\n")[0]) !== stale.pid) await link(aside, file).catch(() => undefined);
  await rm(aside, { force: true });
};

class ServerDidNotStart extends StartError {
  constructor(
    place: ClusterPlace,
    readonly log: string,
  ) {
    const lines = log.trim().split("\n").slice(-LOG_LINES_SHOWN);
    super(
      `The embedded PostgreSQL did not start. The last lines of its log (${logOf(place)}):\n` +
        lines.map((line) => `  ${line}`).join("\n"),
    );
  }

  get portTaken(): boolean {
    return /could not bind|could not create any TCP\/IP sockets/.test(this.log);
  }

  /** True also while remains of a killed server exist. */
  get clusterTaken(): boolean {
    return /lock file .* already exists|is still in use|bogus data in lock file|lock file .* is empty/.test(
      this.log,
    );
  }
}

interface StartOptions {
  place: ClusterPlace;
  binaries: Binaries;
  port: number;
  settings: Readonly<Record<string, string>>;
}

/** The server outlives this process, because several processes share a server. Throws ServerDidNotStart. */
export const startServer = async ({ place, binaries, port, settings }: StartOptions): Promise<void> => {
  await removeStalePostmasterFile(place);
  const logSize = (await stat(logOf(place)).catch(() => undefined))?.size ?? 0;
  const log = await open(logOf(place), logSize > LOG_BYTES_AT_MOST ? "w" : "a", 0o600);
  const logStart = logSize > LOG_BYTES_AT_MOST ? 0 : logSize;
  const readLog = async () => (await readFile(logOf(place))).subarray(logStart).toString("utf8");
  try {
    await give(logOf(place), place.user);
    const options = Object.entries({ ...SETTINGS, port: String(port), ...settings });
    const server = spawn(
      binaries.postgres,
      ["-D", dataOf(place), ...options.flatMap(([name, value]) => ["-c", `${name}=${value}`])],
      {
        ...place.user,
        cwd: place.folder,
        env: ENVIRONMENT,
        detached: true,
        stdio: ["ignore", log.fd, log.fd],
      },
    );
    let failure: string | undefined;
    server.once("error", (error) => (failure = error.message));
    server.once("exit", (code, signal) => (failure = `It ended with ${signal ?? `exit code ${code}`}.`));
    server.unref();
    for (const end = Date.now() + START_SECONDS * 1000; ; await delay(POLL_MS)) {
      if (failure !== undefined) throw new ServerDidNotStart(place, `${await readLog()}${failure}`);
      const postmaster = await readPostmasterFile(place);
      if (postmaster?.pid === server.pid && postmaster?.ready) break;
      if (Date.now() > end) {
        server.kill("SIGINT");
        throw new ServerDidNotStart(place, `${await readLog()}It was not ready after ${START_SECONDS} s.`);
      }
    }
  } finally {
    await log.close();
  }
};

/** A clean stop, so the next start needs no recovery. */
export const stopServer = async (place: ClusterPlace): Promise<void> => {
  const postmaster = await findPostmaster(place);
  if (postmaster === undefined) return;
  kill(postmaster.pid, "SIGINT");
  for (
    const end = Date.now() + STOP_SECONDS * 1000;
    await isPostmaster(postmaster.pid, place);
    await delay(POLL_MS)
  ) {
    if (Date.now() > end) {
      kill(postmaster.pid, "SIGQUIT"); // at once; the next start recovers
      return;
    }
  }
};

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
}

const DATABASE = "threadloom";
/** Every process that uses the server shares this lock. The process that gets it exclusively may stop the server. */
const USER_LOCK = 7_448_120_263;
const ATTEMPTS_AT_MOST = 500;
const RETRY_MS = 100;
/** Longer than a stop or a crash recovery takes. */
const JOIN_MS = 60_000;
/**
 * A closed connection can stay in pg_stat_activity for more than a second (load 30 on two cores), and would count as a
 * user.
 */
const LEAVING_MS = 4_000;

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });

/** Starts the server, unless another process has started it. Returns its port. */
const ensureServer = async (options: Omit<StartOptions, "port">): Promise<number> => {
  const { place } = options;
  let port = usualPort(place);
  for (let attempt = 1; attempt <= ATTEMPTS_AT_MOST; attempt += 1) {
    const running = await findPostmaster(place);
    if (running?.ready) return running.port;
    try {
      if (running === undefined) {
        await startServer({ ...options, port });
        return port;
      }
    } catch (error) {
      if (!(error instanceof ServerDidNotStart)) throw error;
      if (error.portTaken) port = await freePort();
      else if (!error.clusterTaken) throw error;
    }
    await delay(RETRY_MS);
  }
  throw new StartError(`The PostgreSQL server of ${place.folder} does not get ready.`);
};

/** True: new processes now wait for the stop. */
const isLast = async (keeper: pg.Client): Promise<boolean> => {
  // Two processes that close at once must not block each other.
  await keeper.query(`select pg_advisory_unlock_shared(${USER_LOCK})`);
  const lock = await keeper.query<{ alone: boolean }>(`select pg_try_advisory_lock(${USER_LOCK}) as alone`);
  if (lock.rows[0]?.alone !== true) return false;
  for (const end = Date.now() + LEAVING_MS; ; await delay(POLL_MS)) {
    // A process may also use the server through DATABASE_URL.
    const others = await keeper.query(
      "select from pg_stat_activity where application_name like 'threadloom%' and pid <> pg_backend_pid() limit 1",
    );
    if (others.rowCount === 0) return true;
    if (Date.now() > end) return false;
  }
};

/** Returns a session that holds the shared lock. Fails passingly if another process stops the server meanwhile. */
const openKeeper = async (connectionString: string): Promise<pg.Client> => {
  const keeper = new pg.Client({ connectionString, application_name: "threadloom embedded" });
  // Without a listener a lost connection ends the process.
  keeper.on("error", () => undefined);
  try {
    await keeper.connect();
    await keeper.query(`select pg_advisory_lock_shared(${USER_LOCK})`);
    const made = await keeper.query(`select from pg_database where datname = '${DATABASE}'`);
    if (made.rowCount === 0) await keeper.query(`create database ${DATABASE}`);
  } catch (error) {
    if (["42P04", "23505"].includes(sqlState(error) ?? "")) return keeper; // another process was faster
    await keeper.end().catch(() => undefined);
    throw error;
  }
  return keeper;
};

/**
 * Starts a server, or joins the cluster's running server (docs/decisions/001-embedded-postgres.md). Throws StartError
 * with the last lines of the server's log.
 */
export const startEmbeddedPostgres = async (options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> => {
  const { dataFolder, logger, settings = {} } = options;
  const place = await findPlace(dataFolder);
  await makePlace(place);
  const binaries = await findBinaries(place);
  // Takes some of the seconds of a first start, which would otherwise be silent.
  if (!(await hasCluster(dataFolder))) logger.info(`making a database in ${dataFolder}, once`);
  await createCluster(place, binaries);
  const password = await readPassword(place);
  const urlFor = (port: number, database: string): string =>
    `postgresql://${SUPERUSER}:${password}@127.0.0.1:${port}/${database}`;
  const { keeper, port } = await retryPassing(
    async () => {
      const port = await ensureServer({ place, binaries, settings });
      return { keeper: await openKeeper(urlFor(port, "postgres")), port };
    },
    { forMs: JOIN_MS },
  );
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    try {
      if (await isLast(keeper)) await stopServer(place);
      else logger.info("the embedded PostgreSQL goes on: another Threadloom process is connected to it");
    } catch (error) {
      // The session was lost, so nobody knows who uses the server. The next start goes on with it.
      if (!isPassing(error)) throw error;
    } finally {
      await keeper.end().catch(() => undefined);
    }
  };
  return {
    connectionString: urlFor(port, DATABASE),
    dataFolder: dirname(place.folder),
    close: () => (closing ??= close()),
  };
};
