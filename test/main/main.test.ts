import { spawn } from "node:child_process";
import { closeSync, existsSync, openSync } from "node:fs";
import { readdir, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { findPostmaster } from "../../src/platform/database/embedded/embedded.ts";
import { findPlace } from "../../src/platform/database/embedded/place.ts";
import { eventually } from "../helpers/conditions.ts";
import { freshDatabase, type FreshDatabase } from "../helpers/database.ts";
import { spawnServer, type ServerProcess } from "../helpers/server-process.ts";
import { temporaryFolder, type TemporaryFolder } from "../helpers/temporary-folder.ts";
import { freePort } from "../helpers/free-port.ts";

const GRAPH = fileURLToPath(new URL("../fixtures/process.ts", import.meta.url));

let folder: TemporaryFolder;
let config: string;
const processes: ServerProcess[] = [];
const databases: FreshDatabase[] = [];

beforeEach(async () => {
  folder = await temporaryFolder();
  config = join(folder.path, "langgraph.json");
  await writeFile(config, JSON.stringify({ graphs: { process: `${GRAPH}:graph` }, env: ".env" }));
  await writeFile(join(folder.path, ".env"), "GREETING=from the file\nGREETING_OF_SHELL=from the file\n");
});
afterEach(async () => {
  await Promise.all(processes.splice(0).map((one) => one.kill()));
  await Promise.all(databases.splice(0).map((one) => one.drop()));
  await folder.remove();
});

/** A device that accepts no output. */
const FULL = "/dev/full";

const start = (argv: string[], environment: Record<string, string> = {}): ServerProcess => {
  const started = spawnServer(argv, environment);
  processes.push(started);
  return started;
};

/** A server on a database of its own and a free port. */
const aServer = async (environment: Record<string, string> = {}): Promise<ServerProcess> => {
  const database = await freshDatabase();
  databases.push(database);
  return start(["--config", config, "--port", "0"], {
    DATABASE_URL: database.connectionString,
    ...environment,
  });
};

const run = async (server: ServerProcess, act: string): Promise<unknown> => {
  const response = await fetch(`${await server.address()}/runs/wait`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ assistant_id: "process", input: { act } }),
  });
  return response.json();
};

describe("a command that needs no server", () => {
  test("--help prints the options, --version the version", async () => {
    const help = start(["--help"]);
    expect(await help.exit()).toBe(0);
    expect(help.output()).toContain("--unsafe-no-auth");
    const version = start(["--version"]);
    expect(await version.exit()).toBe(0);
    expect(version.output()).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  test.each([
    [["--config", "/nowhere/langgraph.json"], {}, "There is no /nowhere/langgraph.json. It names the graphs"],
    [["--host", "203.0.113.1", "--unsafe-no-auth"], {}, "203.0.113.1 is not an address of this machine"],
    [
      ["--port", "0"],
      { DATABASE_URL: "postgres://me:hunter2@127.0.0.1:1/x", DATABASE_WAIT_SECONDS: "0" },
      "The database at 127.0.0.1:1/x",
    ],
  ])("%j %j ends with exit code 1 and a message without a stack", async (argv, environment, sentence) => {
    const server = start(argv, environment as Record<string, string>);
    expect(await server.exit()).toBe(1);
    expect(server.output()).toContain(`threadloom: ${sentence}`);
    expect(server.output()).not.toMatch(/\n\s+at |hunter2/);
  });

  test("beyond loopback a server without any key is refused, after it has checked the table", async () => {
    const server = await aServer({ HOST: "0.0.0.0" });
    expect(await server.exit()).toBe(1);
    expect(server.output()).toContain("threadloom: Refusing to listen on 0.0.0.0 without API keys");
    expect(server.output()).not.toMatch(/\n\s+at /);
  });

  test("a used port is named with the flag to change it, and nothing keeps running", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    try {
      const { port } = other.address() as { port: number };
      const data = folder.dataFolder;
      const server = start(["--config", config, "--port", String(port), "--data", data]);
      expect(await server.exit()).toBe(1);
      expect(server.output()).toContain(`threadloom: Port ${port} on 127.0.0.1 is in use`);
      expect(server.output()).toContain("--port");
      expect(await findPostmaster(await findPlace(data))).toBeUndefined();
    } finally {
      other.close();
    }
  });
});

describe("the end of a server", () => {
  // SIGTERM: test/smoke/processes.test.ts.
  test.each(["SIGINT", "SIGHUP"] as const)(
    "%s closes everything, including the embedded database",
    async (signal) => {
      const data = folder.dataFolder;
      const empty = { GREETING: "", LANGCHAIN_CALLBACKS_BACKGROUND: "" };
      const server = start(["--config", config, "--port", "0", "--data", data], empty);
      // The file named by langgraph.json is loaded before the graphs, and LangChain sends its traces in time. Empty
      // variables count as not set.
      expect(await run(server, "look")).toMatchObject({ greeting: "from the file", background: "false" });
      const place = await findPlace(data);
      expect(await findPostmaster(place)).toBeDefined();
      server.child.kill(signal);
      expect(await server.exit()).toBe(0);
      expect(await findPostmaster(place)).toBeUndefined();
      expect(await readdir(join(place.folder, "cluster/data"))).not.toContain("postmaster.pid");
    },
  );

  /** A server on an embedded database, and the database's folder. */
  const onEmbedded = async (environment: Record<string, string> = {}) => {
    const data = folder.dataFolder;
    const server = start(["--config", config, "--port", "0", "--data", data], environment);
    await server.address();
    const place = await findPlace(data);
    expect(await findPostmaster(place)).toBeDefined();
    return { server, place };
  };

  test("a graph that exits is logged, and the next server goes on with the database and stops it", async () => {
    const { server, place } = await onEmbedded();
    await run(server, "exit").catch(() => undefined);
    expect(await server.exit()).toBe(3);
    expect(server.output()).toMatch(/"code":3,.*the process exits although not everything is closed/);
    const left = (await findPostmaster(place))!;
    const next = await onEmbedded();
    expect((await findPostmaster(place))?.pid).toBe(left.pid);
    next.server.child.kill("SIGTERM");
    expect(await next.server.exit()).toBe(0);
    expect(await findPostmaster(place)).toBeUndefined();
  });

  test("a second Ctrl-C ends the process at once, and is logged", async () => {
    const { server } = await onEmbedded({ BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS: "600" });
    void run(server, "wait").catch(() => undefined);
    await eventually("a run is in progress", async () => {
      const metrics = await (await fetch(`${await server.address()}/metrics?format=json`)).json();
      return (metrics as { workers: { active: number } }).workers.active === 1;
    });
    // A signal that follows at once counts as the same one: npm passes Ctrl-C on.
    await eventually("it has ended", () => !server.child.kill("SIGINT") || server.child.exitCode !== null);
    expect(await server.exit()).toBe(130);
    expect(server.output()).toContain("the process exits although not everything is closed");
  });

  test.runIf(existsSync(FULL))(
    "does not depend on the log's reader: a closed terminal, a full disk",
    async () => {
      const database = await freshDatabase();
      databases.push(database);
      const port = await freePort();
      const full = openSync(FULL, "w");
      const child = spawn(
        process.execPath,
        // From source, as in this repository: users start the compiled package.
        ["bin/threadloom.js", "start", "--config", config, "--port", `${port}`],
        {
          cwd: fileURLToPath(new URL("../../", import.meta.url)),
          env: {
            ...process.env,
            LOG_FORMAT: "json",
            DATABASE_URL: database.connectionString,
            SOURCE_SCHEMAS: "false",
          },
          stdio: ["ignore", full, full],
        },
      );
      const ended = once(child, "exit");
      try {
        await eventually("it answers", async () => {
          const answer = await fetch(`http://127.0.0.1:${port}/ok`).catch(() => undefined);
          return answer?.status === 200;
        });
        child.kill("SIGHUP");
        expect(await ended).toEqual([0, null]);
      } finally {
        child.kill("SIGKILL");
        await ended;
        closeSync(full);
      }
    },
  );

  test("a graph's unhandled rejection is logged, and the server continues; an uncaught exception closes the server", async () => {
    // An existing variable wins over the file.
    const server = await aServer({ GREETING: "from the shell" });
    await run(server, "reject");
    expect(await run(server, "look")).toMatchObject({ greeting: "from the shell" });
    expect(server.output()).toMatch(/a rejection was not handled/);
    const placeOfError = /withheld, \d+ characters.*process\.ts:\d+/g;
    expect(server.output().match(placeOfError)).toHaveLength(1);
    expect(server.child.exitCode).toBeNull();
    await run(server, "throw").catch(() => undefined);
    expect(await server.exit()).toBe(1);
    expect(server.output().match(placeOfError)).toHaveLength(2);
    expect(server.output()).toMatch(/"runs_handed_back":0,"runs_pending":0,"msg":"stopped"/);
  });
});
