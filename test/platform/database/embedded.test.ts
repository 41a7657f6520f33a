import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, cp, lstat, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { userInfo } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  createCluster,
  dataOf,
  findPostmaster,
  stopServer,
} from "../../../src/platform/database/embedded/embedded.ts";
import {
  findBinaries,
  findPlace,
  isReachable,
  makePlace,
  type ClusterPlace,
} from "../../../src/platform/database/embedded/place.ts";
import {
  startEmbeddedPostgres,
  type EmbeddedPostgres,
} from "../../../src/platform/database/embedded/embedded.ts";
import { listeningLogger } from "../../helpers/parts.ts";
import { temporaryFolder, type TemporaryFolder } from "../../helpers/temporary-folder.ts";

const logger = pino({ level: "silent" });
const CHILD = fileURLToPath(new URL("../../fixtures/embedded-child.ts", import.meta.url));
const ROOT = userInfo().uid === 0;

let folder: TemporaryFolder;
let dataFolder: string;
let place: ClusterPlace;
const opened: EmbeddedPostgres[] = [];

beforeEach(async () => {
  folder = await temporaryFolder();
  dataFolder = folder.dataFolder;
  place = await findPlace(dataFolder);
});
afterEach(async () => {
  for (const postgres of opened.splice(0)) await postgres.close();
  await folder.remove();
});

const start = async (): Promise<EmbeddedPostgres> => {
  const postgres = await startEmbeddedPostgres({ dataFolder, logger, settings: { fsync: "off" } });
  opened.push(postgres);
  return postgres;
};

const query = async (postgres: EmbeddedPostgres, text: string): Promise<Record<string, unknown>[]> => {
  const client = new pg.Client({ connectionString: postgres.connectionString });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
};

const eventually = async <T>(look: () => Promise<T | undefined>): Promise<T> => {
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
};

test("the first start says that it makes a database, and the next one does not", async () => {
  const { logger, lines } = listeningLogger();
  const said = async (): Promise<string[]> => {
    const postgres = await startEmbeddedPostgres({ dataFolder, logger, settings: { fsync: "off" } });
    await postgres.close();
    return lines.splice(0).map((line) => (JSON.parse(line) as { msg: string }).msg);
  };
  expect(await said()).toEqual([`making a database in ${dataFolder}, once`]);
  expect(await said()).toEqual([]);
});

describe("one process", () => {
  test("data survive a restart, and the address stays the same", async () => {
    const first = await start();
    await query(first, "create table notes (note text)");
    await query(first, "insert into notes values ('kept')");
    await first.close();
    expect(await findPostmaster(place)).toBeUndefined();
    const second = await start();
    expect(second.connectionString).toBe(first.connectionString);
    expect(await query(second, "select * from notes")).toEqual([{ note: "kept" }]);
  });

  test("the server listens on 127.0.0.1 only and requires the password", async () => {
    const postgres = await start();
    expect(await query(postgres, "show listen_addresses")).toEqual([{ listen_addresses: "127.0.0.1" }]);
    const url = new URL(postgres.connectionString);
    expect(url.hostname).toBe("127.0.0.1");
    expect(url.password).toMatch(/^[0-9a-f]{64}$/);
    const stranger = new URL(postgres.connectionString);
    stranger.password = "guess";
    await expect(query({ ...postgres, connectionString: stranger.href }, "select")).rejects.toThrow(
      /password/,
    );
    expect((await stat(join(place.folder, "cluster/password"))).mode & 0o777).toBe(0o600);
    expect((await stat(place.folder)).mode & 0o777).toBe(0o700);
  });

  test("another port is used when the remembered one is taken", async () => {
    const first = await start();
    await first.close();
    const port = Number(new URL(first.connectionString).port);
    const intruder: Server = createServer().listen(port, "127.0.0.1");
    await once(intruder, "listening");
    try {
      const second = await start();
      expect(new URL(second.connectionString).port).not.toBe(String(port));
      expect(await query(second, "select 1 as one")).toEqual([{ one: 1 }]);
    } finally {
      intruder.close();
    }
  });

  test("a server that can't start throws the reason, with the last lines of its log", async () => {
    await makePlace(place);
    await createCluster(place, await findBinaries(place));
    await writeFile(join(dataOf(place), "postgresql.conf"), "shared_buffers = plenty\n");
    await expect(start()).rejects.toThrow(
      /did not start.*postgres\.log[^]*syntax|invalid value.*shared_buffers/i,
    );
    expect(await findPostmaster(place)).toBeUndefined();
  });

  test("a postmaster.pid whose number now belongs to another program does not prevent the start", async () => {
    const first = await start();
    await first.close();
    await writeFile(
      join(dataOf(place), "postmaster.pid"),
      `${process.pid}\n${dataOf(place)}\n0\n1\n\n\n\nready\n`,
    );
    const second = await start();
    expect(await query(second, "select 1 as one")).toEqual([{ one: 1 }]);
  });
});

describe("several processes", () => {
  /** A process of its own that starts the embedded server and prints its address. */
  const startInChild = async () => {
    const child = spawn(process.execPath, ["--import", "tsx", CHILD, dataFolder], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    const connectionString = await eventually(() => Promise.resolve(/^url (\S+)$/m.exec(output)?.[1]));
    const pid = Number(/^pid (\d+)$/m.exec(output)?.[1]);
    return { child, connectionString, pid, exited: once(child, "exit") };
  };

  test("the server of a killed process is adopted, and stopped by the process that adopted it", async () => {
    const dead = await startInChild();
    const before = (await findPostmaster(place))!;
    process.kill(dead.pid, "SIGKILL");
    await dead.exited;
    expect((await findPostmaster(place))?.pid).toBe(before.pid);
    const adopter = await start();
    expect((await findPostmaster(place))?.pid).toBe(before.pid);
    expect(adopter.connectionString).toBe(dead.connectionString);
    // Until the server notices the closed connection of the dead process, it looks used.
    await eventually(async () => {
      const sql = "select pid from pg_stat_activity where application_name = 'threadloom embedded'";
      return (await query(adopter, sql)).length === 1 || undefined;
    });
    await adopter.close();
    expect(await findPostmaster(place)).toBeUndefined();
  });

  test("after a process and its server were killed, the next start recovers the committed data", async () => {
    const dead = await startInChild();
    const before = (await findPostmaster(place))!;
    await query(
      { ...dead, dataFolder, close: () => Promise.resolve() },
      "create table notes as select 1 as note",
    );
    process.kill(dead.pid, "SIGKILL");
    process.kill(before.pid, "SIGKILL");
    await dead.exited;
    const postgres = await start();
    expect(await query(postgres, "select * from notes")).toEqual([{ note: 1 }]);
  });

  test("two processes that start at once on a new data folder share one server; the last one stops it", async () => {
    const postgres = await Promise.all([start(), start(), start()]);
    expect(new Set(postgres.map(({ connectionString }) => connectionString)).size).toBe(1);
    const [first, second, third] = postgres as [EmbeddedPostgres, EmbeddedPostgres, EmbeddedPostgres];
    await first.close();
    await second.close();
    expect(await query(third, "select 1 as one")).toEqual([{ one: 1 }]);
    await third.close();
    expect(await findPostmaster(place)).toBeUndefined();
  });

  test("processes that close at once leave no server", async () => {
    const postgres = await Promise.all([start(), start(), start()]);
    await Promise.all(postgres.map((one) => one.close()));
    expect(await findPostmaster(place)).toBeUndefined();
  });

  test("a process that starts while the last one closes gets a running server", async () => {
    for (let round = 0; round < 5; round += 1) {
      const leaving = await start();
      const [, coming] = await Promise.all([leaving.close(), start()]);
      expect(await query(coming, "select 1 as one")).toEqual([{ one: 1 }]);
      await coming.close();
    }
  });

  test("a process that got the address as its DATABASE_URL keeps the server running", async () => {
    const postgres = await start();
    const worker = new pg.Client({
      connectionString: postgres.connectionString,
      application_name: "threadloom worker",
    });
    await worker.connect();
    await postgres.close();
    expect((await worker.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
    await worker.end();
  });
});

describe.runIf(ROOT)("as root", () => {
  test("the server runs as another user, in the configured folder if that user can reach it", async () => {
    const postgres = await start();
    expect(postgres.dataFolder).toBe(dataFolder);
    const { pid } = (await findPostmaster(place))!;
    const status = await readFile(`/proc/${pid}/status`, "utf8");
    expect(status).not.toMatch(/^Uid:\s+0\b/m);
  });

  test("a folder below a home of mode 700 gets its data in a system folder", async () => {
    await chmod(folder.path, 0o700);
    const wished = join(folder.path, "project/.threadloom");
    const elsewhere = await findPlace(wished);
    expect(elsewhere.folder).toMatch(/^\/var\/lib\/threadloom\/[0-9a-f]{16}\/postgres$/);
    expect(await findPlace(wished)).toEqual(elsewhere);
    try {
      const postgres = await startEmbeddedPostgres({
        dataFolder: wished,
        logger,
        settings: { fsync: "off" },
      });
      opened.push(postgres);
      expect(await query(postgres, "select 1 as one")).toEqual([{ one: 1 }]);
      expect(postgres.dataFolder).toBe(dirname(elsewhere.folder));
      await postgres.close();
    } finally {
      await rm(dirname(elsewhere.folder), { recursive: true, force: true });
    }
  });

  test("data created by a normal user are used as that user", async () => {
    const nobody = { uid: 65_534, gid: 65_534 };
    const home = join(folder.path, "home");
    await mkdir(home, { mode: 0o755 });
    await chown(home, nobody.uid, nobody.gid);
    const wished = join(home, ".threadloom");
    const TSX = fileURLToPath(import.meta.resolve("tsx"));
    const child = spawn(process.execPath, ["--import", TSX, CHILD, wished], {
      ...nobody,
      cwd: home,
      stdio: ["pipe", "pipe", "inherit"],
      env: { HOME: home, TMPDIR: home },
    });
    const [output] = (await once(child.stdout, "data")) as [Buffer];
    child.kill("SIGKILL");
    const theirs = await findPlace(wished);
    await stopServer(theirs);
    const postgres = await startEmbeddedPostgres({ dataFolder: wished, logger, settings: { fsync: "off" } });
    opened.push(postgres);
    expect(output.toString()).toContain(postgres.connectionString);
    expect((await stat(join(wished, "postgres/postgres.log"))).uid).toBe(nobody.uid);
    await postgres.close();
  });

  test("binaries that the server's user can't reach are copied, with the links that no script created", async () => {
    const version = `0.0.0-test-${process.pid}`;
    const installed = dirname(dirname(dirname((await findBinaries(place)).initdb)));
    const source = join(folder.path, "package");
    await mkdir(source, { mode: 0o700 });
    await cp(join(installed, "native"), join(source, "native"), { recursive: true, verbatimSymlinks: true });
    for (const name of await readdir(join(source, "native/lib"))) {
      const file = join(source, "native/lib", name);
      if ((await lstat(file)).isSymbolicLink()) await rm(file);
    }
    await chmod(join(source, "native/bin/initdb"), 0o600);
    await writeFile(join(source, "package.json"), JSON.stringify({ version }));
    const [binaries, again] = await Promise.all([findBinaries(place, source), findBinaries(place, source)]);
    try {
      expect(again).toEqual(binaries);
      expect(binaries.initdb).toMatch(/^\/var\/lib\/threadloom\/postgresql-0\.0\.0-test/);
      await makePlace(place);
      await createCluster(place, binaries);
      expect(await readFile(join(dataOf(place), "PG_VERSION"), "utf8")).toBe("18\n");
    } finally {
      await rm(dirname(dirname(dirname(binaries.initdb))), { recursive: true, force: true });
    }
  });

  test("a folder is reachable only if each folder above it may be entered", async () => {
    const nobody = { uid: 65_534, gid: 65_534 };
    expect(await isReachable(join(folder.path, "not/yet/there"), nobody)).toBe(true);
    await chmod(folder.path, 0o750);
    expect(await isReachable(join(folder.path, "not/yet/there"), nobody)).toBe(false);
  });
});
