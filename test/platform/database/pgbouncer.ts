import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, chown, writeFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase } from "../../helpers/database.ts";
import { temporaryFolder } from "../../helpers/temporary-folder.ts";
import { freePort } from "../../helpers/free-port.ts";

/** An installed PgBouncer. */
export interface Pgbouncer {
  path: string;
  version: string;
  /** From 1.21 on. */
  knowsPreparedStatements: boolean;
}

/** Debian's folder for it, which is not on the path of a normal user. */
const SYSTEM_FOLDER = "/usr/sbin";
/** It refuses to run as root. */
const NOBODY = { uid: 65_534, gid: 65_534 };

/** The one in TEST_PGBOUNCER, else the first on the path, else Debian's. */
export const findPgbouncer = async (): Promise<Pgbouncer | undefined> => {
  const named = process.env["TEST_PGBOUNCER"] ?? "";
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), SYSTEM_FOLDER];
  const path =
    named === ""
      ? folders.map((folder) => join(folder, "pgbouncer")).find((file) => existsSync(file))
      : named;
  if (path === undefined) return undefined;
  const { stdout } = await promisify(execFile)(path, ["--version"]);
  const [version = "", major, minor] = /(\d+)\.(\d+)[.\d]*/.exec(stdout) ?? [];
  return { path, version, knowsPreparedStatements: Number(major) * 1_000 + Number(minor) >= 1_021 };
};

export interface PoolerOptions {
  program: Pgbouncer;
  /** The address of the database; its name, user and password are used unchanged. */
  connectionString: string;
  mode?: "transaction" | "session";
  /** The maximum of connections to the database, of all clients together. */
  poolSize: number;
  preparedStatements?: boolean;
  settings?: string[];
}

export interface Pooler {
  connectionString: string;
  /** Open connections of its clients, without the one that asks. */
  countClients(): Promise<number>;
  /** Ends it like a crash; its address stays reserved for `start`. */
  kill(): Promise<void>;
  start(): Promise<void>;
  close(): Promise<void>;
}

const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`;

/** A real PgBouncer in front of the database, on a free port of 127.0.0.1. */
export const startPooler = async (options: PoolerOptions): Promise<Pooler> => {
  const { program, connectionString, mode = "transaction", poolSize, preparedStatements = false } = options;
  const target = new URL(connectionString);
  const user = decodeURIComponent(target.username);
  const port = await freePort();
  const folder = await temporaryFolder();
  const configuration = join(folder.path, "pgbouncer.ini");
  const users = join(folder.path, "users.txt");
  await writeFile(users, `${quoted(user)} ${quoted(decodeURIComponent(target.password))}\n`, { mode: 0o600 });
  await writeFile(
    configuration,
    [
      "[databases]",
      `* = host=${target.hostname} port=${target.port || "5432"}`,
      "[pgbouncer]",
      "listen_addr = 127.0.0.1",
      `listen_port = ${port}`,
      "unix_socket_dir =",
      "auth_type = scram-sha-256",
      `auth_file = ${users}`,
      `admin_users = ${user}`,
      `pool_mode = ${mode}`,
      `default_pool_size = ${poolSize}`,
      ...(program.knowsPreparedStatements
        ? [`max_prepared_statements = ${preparedStatements ? 200 : 0}`]
        : []),
      ...(options.settings ?? []),
    ].join("\n"),
    { mode: 0o600 },
  );
  const root = userInfo().uid === 0;
  if (root) for (const file of [users, configuration]) await chown(file, NOBODY.uid, NOBODY.gid);
  await chmod(folder.path, 0o755);

  const through = new URL(connectionString);
  through.host = `127.0.0.1:${port}`;
  const ask = async (database: string, statement: string): Promise<unknown[]> => {
    const url = new URL(through);
    url.pathname = `/${database}`;
    const client = new pg.Client({ connectionString: url.href });
    client.on("error", () => undefined);
    await client.connect();
    try {
      return (await client.query<object>(statement)).rows;
    } finally {
      await client.end();
    }
  };

  let kill = () => Promise.resolve();
  const start = async (): Promise<void> => {
    const child = spawn(program.path, [configuration], {
      ...(root ? NOBODY : {}),
      cwd: "/",
      stdio: ["ignore", "ignore", "pipe"],
    });
    let said = "";
    child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
    const ended = once(child, "close");
    const endWithProcess = () => void child.kill("SIGKILL");
    process.on("exit", endWithProcess);
    kill = async () => {
      child.kill("SIGKILL");
      await ended;
      process.off("exit", endWithProcess);
    };
    await eventually("PgBouncer answers", async () => {
      if (child.exitCode !== null) throw new Error(`PgBouncer ended:\n${said}`);
      return await ask("pgbouncer", "show version").catch(() => undefined);
    });
  };
  try {
    await start();
  } catch (error) {
    await kill();
    await folder.remove();
    throw error;
  }
  return {
    connectionString: through.href,
    countClients: async () => (await ask("pgbouncer", "show clients")).length - 1,
    kill: () => kill(),
    start,
    async close() {
      await kill();
      await folder.remove();
    },
  };
};

/** The resources that a test opens; `tidyUp` closes them in reverse order. */
export const openings = () => {
  const opened: { close(): Promise<void> }[] = [];
  const keep = async <T extends { close(): Promise<void> }>(opening: T | Promise<T>): Promise<T> => {
    const one = await opening;
    opened.push(one);
    return one;
  };
  return {
    keep,
    async aDatabase(): Promise<string> {
      const { connectionString, drop } = await freshDatabase();
      opened.push({ close: drop });
      return connectionString;
    },
    async tidyUp(): Promise<void> {
      for (const one of opened.splice(0).reverse()) await one.close();
    },
  };
};
