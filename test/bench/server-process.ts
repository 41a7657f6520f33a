import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import {
  findPostmaster,
  readPassword,
  stopServer,
  SUPERUSER,
} from "../../src/platform/database/embedded/embedded.ts";
import { findPlace, type ClusterPlace } from "../../src/platform/database/embedded/place.ts";
import { clusterCpuMs, processCpuMs, processMemory, type CpuSample } from "./cpu.ts";
import { createHttpClient, type HttpClient } from "./http-client.ts";
import { now, pause } from "./load.ts";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));

const START_SECONDS = 60;
const STOP_SECONDS = 30;
const POLL_MS = 2;
/** Characters of the server's output that are kept, to show them if it ends by itself. */
const OUTPUT_KEPT = 4_000;

export interface RemoteServer {
  readonly name: "threadloom" | "peer";
  readonly http: HttpClient;
  cpu(): Promise<CpuSample>;
  /** Bytes of its database's log so far; absent without a database. */
  walBytes?(): Promise<number>;
  memory(): Promise<{ now: number; peak: number }>;
}

export interface Replica {
  readonly pid: number;
  readonly address: string;
  readonly http: HttpClient;
  stop(): Promise<void>;
}

export interface ReplicaOptions {
  argv?: readonly string[];
  environment?: Readonly<Record<string, string>>;
  headers?: Readonly<Record<string, string>>;
}

export interface ServerOptions {
  /** The path of the server's Node; default: the one of the benchmark. */
  node?: string;
  /** Node's own options, e.g. `--cpu-prof`. */
  nodeOptions: readonly string[];
  /** Another checkout of this project, whose server and graphs run instead. */
  root?: string;
  environment?: Readonly<Record<string, string>> | undefined;
}

/** The environment of a server: this process's own, without variables that would change the server. */
const baseEnvironment = (): NodeJS.ProcessEnv => {
  const { PATH, HOME, LANG, TZ } = process.env;
  // The heap limit of `npm start`.
  const NODE_OPTIONS = "--max-old-space-size=1024";
  return { PATH, HOME, LANG, TZ, NODE_OPTIONS, LANGSMITH_TRACING: "false" };
};

/** A child process that ends with this one, and whose last output is kept. */
export const spawnProcess = (
  command: readonly string[],
  { cwd = ROOT, environment = {} }: { cwd?: string; environment?: Readonly<Record<string, string>> } = {},
) => {
  const [program = "", ...args] = command;
  // In a process group of its own: Ctrl-C goes to the benchmark, which then stops it.
  const child: ChildProcess = spawn(program, args, {
    cwd,
    env: { ...baseEnvironment(), ...environment },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  let output = "";
  const listen = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-OUTPUT_KEPT);
  };
  child.stdout?.on("data", listen);
  child.stderr?.on("data", listen);
  const ended = once(child, "close");
  const killNow = (): void => void child.kill("SIGKILL");
  process.once("exit", killNow);
  void ended.then(() => process.off("exit", killNow));
  return {
    pid: child.pid ?? 0,
    output: () => output,
    /** Waits until its output matches; returns the match. */
    async said(pattern: RegExp): Promise<RegExpExecArray> {
      for (const end = now() + START_SECONDS * 1000; ; await pause(POLL_MS)) {
        const match = pattern.exec(output);
        if (match !== null) return match;
        if (child.exitCode !== null || child.signalCode !== null)
          throw new Error(`The server ended before it listened:\n${output}`);
        if (now() > end) throw new Error(`The server did not listen within ${START_SECONDS} s:\n${output}`);
      }
    },
    async stop(): Promise<void> {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGTERM");
      const timer = setTimeout(killNow, STOP_SECONDS * 1000);
      await ended;
      clearTimeout(timer);
    },
  };
};
/** The server under test, in a process of its own, with its own embedded PostgreSQL in a temporary folder. */
export const createServerUnderTest = async ({
  node = process.execPath,
  nodeOptions,
  environment: own = {},
  root = ROOT,
}: ServerOptions) => {
  const folder = await mkdtemp(join(tmpdir(), "threadloom-bench-"));
  // As root, the database runs as another user, who needs access to the folder.
  if (process.getuid?.() === 0) await chmod(folder, 0o755);
  const place: ClusterPlace = await findPlace(join(folder, "data"));
  /** Functions that stop each started process, including those that don't answer yet. */
  const stops = new Set<() => Promise<void>>();
  let server: Replica | undefined;

  /** The id changes when the server restarts. */
  const postmasterPid = async (): Promise<number> => (await findPostmaster(place))?.pid ?? 0;

  const connectionString = async (database: string): Promise<string> => {
    const postmaster = await findPostmaster(place);
    if (postmaster === undefined) throw new Error("The embedded PostgreSQL does not run.");
    return `postgresql://${SUPERUSER}:${await readPassword(place)}@127.0.0.1:${postmaster.port}/${database}`;
  };

  const query = async <Row extends pg.QueryResultRow>(
    text: string,
    database = "threadloom",
  ): Promise<Row[]> => {
    const client = new pg.Client({ connectionString: await connectionString(database) });
    await client.connect();
    try {
      return (await client.query<Row>(text)).rows;
    } finally {
      await client.end();
    }
  };

  const remote: RemoteServer = {
    name: "threadloom",
    get http() {
      if (server === undefined) throw new Error("The server does not run.");
      return server.http;
    },
    cpu: async () => ({
      server: await processCpuMs(server?.pid ?? 0),
      database: await clusterCpuMs(await postmasterPid()),
    }),
    async walBytes() {
      const [row] = await query<{ bytes: number }>(
        "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as bytes",
      );
      return row?.bytes ?? 0;
    },
    memory: () => processMemory(server?.pid ?? 0),
  };

  /** One more process on the data folder: the first one starts the database, the last one stops it. */
  const startReplica = async ({
    argv = [],
    environment = {},
    headers = {},
  }: ReplicaOptions = {}): Promise<Replica> => {
    const child = spawnProcess(
      [
        node,
        ...["--import", "tsx", ...nodeOptions, "src/main.ts", "start"],
        ...[
          "--config",
          join(root, "test/bench/graphs/langgraph.json"),
          "--port",
          "0",
          "--data",
          join(folder, "data"),
        ],
        ...argv,
      ],
      { cwd: root, environment: { LOG_FORMAT: "json", ...own, ...environment } },
    );
    const clients: HttpClient[] = [];
    const stop = async (): Promise<void> => {
      for (const client of clients) client.close();
      await child.stop();
      stops.delete(stop);
    };
    stops.add(stop);
    const address = (await child.said(/"msg":"listening on ([^"]+)"/))[1]!;
    const http = createHttpClient(address, headers);
    clients.push(http);
    await http.post("/assistants/search", {});
    return { pid: child.pid, address, http, stop };
  };

  const stop = async (): Promise<void> => {
    await server?.stop();
    server = undefined;
  };

  return {
    remote,
    connectionString,
    query,
    postmasterPid,
    stop,
    startReplica,

    /** Milliseconds from the start of the process to the first answered request, one that needs the database. */
    async start(): Promise<number> {
      const started = now();
      server = await startReplica();
      return now() - started;
    },

    /** Call this while the server runs; it counts from the next start. */
    async prepareStatements(): Promise<void> {
      await query("alter system set shared_preload_libraries = 'pg_stat_statements'");
      await query("alter system set pg_stat_statements.track_planning = on");
      await query("create extension if not exists pg_stat_statements");
    },

    async createDatabase(name: string): Promise<string> {
      await query(`create database ${pg.escapeIdentifier(name)}`);
      return await connectionString(name);
    },

    async close(): Promise<void> {
      try {
        await Promise.all([...stops].map((stopIt) => stopIt()));
      } finally {
        await stopServer(place); // has no effect unless the server was killed
        await rm(dirname(place.folder), { recursive: true, force: true, maxRetries: 5 });
        await rm(folder, { recursive: true, force: true, maxRetries: 5 });
      }
    },
  };
};
export type ServerUnderTest = Awaited<ReturnType<typeof createServerUnderTest>>;

/** Creates a folder that the user named on the command line. */
export const makeFolder = async (path: string): Promise<string> => {
  const folder = resolve(path);
  await mkdir(folder, { recursive: true });
  return folder;
};
