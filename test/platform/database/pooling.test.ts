import { pino } from "pino";
import { afterEach, describe, expect, inject, test } from "vitest";
import { openDatabase } from "../../../src/platform/database/database.ts";
import { apiOf, saying, textsOf } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { FIXTURE_GRAPHS } from "../../helpers/parts.ts";
import { query } from "../../helpers/query.ts";
import { commandOf } from "../../helpers/command-process.ts";
import { spawnServer } from "../../helpers/server-process.ts";
import { findPgbouncer, openings, startPooler, type Pooler, type PoolerOptions } from "./pgbouncer.ts";

const program = await findPgbouncer();
const POOL_SIZE = 5;
const PASSWORD = decodeURIComponent(new URL(inject("serverUrl")).password);
const { keep, aDatabase, tidyUp } = openings();
afterEach(tidyUp);

const aPooler = (connectionString: string, options: Partial<PoolerOptions> = {}): Promise<Pooler> =>
  keep(startPooler({ program: program!, connectionString, poolSize: POOL_SIZE, ...options }));
const aServer = (options: Parameters<typeof startTestServer>[0]): Promise<TestServer> =>
  keep(startTestServer(options));

const unless = program === undefined ? ": not run, there is no pgbouncer here (see pooler.test.ts)" : "";
describe.runIf(program !== undefined)(`a start behind a pooler${unless}`, () => {
  const starting = (
    connectionString: string,
    databaseDirectUrl?: string,
    databasePreparedStatements = false,
  ) => aServer({ connectionString, databaseDirectUrl, databasePreparedStatements });

  test.each([
    ["with its usual settings", POOL_SIZE, []],
    ["with a single connection", 1, []],
    [
      "that gives out each connection in its turn",
      POOL_SIZE,
      ["server_round_robin = 1", "min_pool_size = 4"],
    ],
  ])("in transaction mode %s is refused without a direct connection", async (_, poolSize, settings) => {
    const direct = await aDatabase();
    const pooler = await aPooler(direct, { poolSize, settings });
    const attempt = starting(pooler.connectionString);
    await expect(attempt).rejects.toThrow(
      /^DATABASE_URL leads through a pooler in transaction mode, .*set DATABASE_DIRECT_URL/,
    );
    // No setting remains on connections that others use.
    expect(
      await query(
        { connectionString: direct },
        "select from pg_locks l join pg_stat_activity a using (pid) where l.locktype = 'advisory' and a.datname = current_database()",
      ),
    ).toEqual([]);
  });

  test("is refused even if other clients keep the pooler busy", async () => {
    const direct = await aDatabase();
    const pooler = await aPooler(direct);
    const busy = await keep(
      openDatabase({
        connectionString: pooler.connectionString,
        poolSize: 20,
        applicationName: "busy",
        preparedStatements: false,
        logger: pino({ level: "silent" }),
      }),
    );
    let stopped = false;
    const load = Array.from({ length: 20 }, async () => {
      while (!stopped) await busy.query("select 1");
    });
    try {
      for (let attempt = 1; attempt <= 10; attempt += 1) {
        await expect(starting(pooler.connectionString)).rejects.toThrow("DATABASE_DIRECT_URL");
      }
    } finally {
      stopped = true;
      await Promise.all(load);
    }
  });

  test("in session mode needs no direct connection", async () => {
    const direct = await aDatabase();
    const pooler = await aPooler(direct, { mode: "session", poolSize: 40 });
    const api = apiOf(await starting(pooler.connectionString, undefined, true));
    const result = await api.aFinishedRun(await api.aThread(), {
      assistant_id: "two-step",
      input: saying("hi"),
    });
    expect(textsOf(result.messages)).toEqual(["hi", "first", "second"]);
  });

  test("is refused if the direct connection leads through a pooler, too", async () => {
    const pooler = await aPooler(await aDatabase());
    await expect(starting(pooler.connectionString, pooler.connectionString)).rejects.toThrow(
      /^DATABASE_DIRECT_URL leads through a pooler in transaction mode itself/,
    );
  });

  test("ends its process with the message, and works once the direct connection is configured", async () => {
    const direct = await aDatabase();
    const pooler = await aPooler(direct);
    const argv = ["--config", FIXTURE_GRAPHS, "--port", "0"];
    const environment = { DATABASE_URL: pooler.connectionString, DATABASE_PREPARED_STATEMENTS: "false" };
    const refused = spawnServer(argv, environment);
    expect(await refused.exit()).toBe(1);
    expect(refused.output()).toMatch(/^threadloom: DATABASE_URL leads through a pooler .*\n$/m);
    expect(refused.output()).not.toContain(PASSWORD);
    const server = spawnServer(argv, { ...environment, DATABASE_DIRECT_URL: direct });
    try {
      const api = apiOf({ url: await server.address() });
      const result = await api.aFinishedRun(await api.aThread(), {
        assistant_id: "counter",
        input: { count: 1 },
      });
      expect(result).toMatchObject({ count: 2 });
    } finally {
      await server.kill();
    }
  });

  test("is refused for an import, too, which migrates", async () => {
    const direct = await aDatabase();
    const pooler = await aPooler(direct);
    for (const statement of [
      "create schema official",
      "create table official.checkpoints (parent_checkpoint_id text)",
      "create table official.checkpoint_blobs (blob bytea)",
      "create table official.checkpoint_writes (blob bytea)",
    ]) {
      await query({ connectionString: direct }, statement);
    }
    const argv = ["--from", direct, "--schema", "official", "--database-url", pooler.connectionString];
    const refused = await commandOf(["import", ...argv], { cwd: process.cwd() });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(
      /^threadloom import: The connection to the database .* DATABASE_DIRECT_URL\.\n$/,
    );
    expect(refused.stderr).not.toContain(PASSWORD);
  });
});

describe("a direct connection", () => {
  test("to another database is refused", async () => {
    const [connectionString, databaseDirectUrl] = [await aDatabase(), await aDatabase()];
    await expect(aServer({ connectionString, databaseDirectUrl })).rejects.toThrow(
      "DATABASE_DIRECT_URL leads to another database than DATABASE_URL.",
    );
  });

  test("that can't be opened is named, without its password", async () => {
    const connectionString = await aDatabase();
    const attempt = aServer({ connectionString, databaseDirectUrl: "postgresql://me:hunter2@127.0.0.1:1/x" });
    await expect(attempt).rejects.toThrow(/^DATABASE_DIRECT_URL can't be used: (?!.*hunter2).*ECONNREFUSED/);
  });

  test("may be the same as the usual one", async () => {
    const connectionString = await aDatabase();
    const api = apiOf(await aServer({ connectionString, databaseDirectUrl: connectionString }));
    const result = await api.aFinishedRun(await api.aThread(), {
      assistant_id: "counter",
      input: { count: 1 },
    });
    expect(result).toMatchObject({ count: 2 });
  });
});
