import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { apiOf } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { encryptionCommand } from "../../helpers/encryption-command.ts";
import { cipherOf, keysOf } from "../../helpers/encryption.ts";
import { query } from "../../helpers/query.ts";

/** `encryption forget` beside servers that encrypt with the key. */

const OLD = "an old key of a test, 32 bytes .";
const NEW = "a key of a test, of 32 bytes ...";
const OLD_ID = cipherOf(OLD).keyId;

let database: FreshDatabase;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(async () => {
  await database.drop();
});

const startServer = (keys: string[]): Promise<TestServer> =>
  startTestServer({
    connectionString: database.connectionString,
    encryptionKeys: keys.flatMap(keysOf),
  });
const forget = () =>
  encryptionCommand({ connectionString: database.connectionString, keys: [NEW, OLD] }, "forget", OLD_ID);
const isNoted = async (): Promise<boolean> =>
  (await query(database, `select from threadloom.encryption_keys where key_id = '${OLD_ID}'`)).length === 1;

test("a key that a server encrypts with is not removed, although no row needs it yet", async () => {
  const server = await startServer([OLD, NEW]);
  try {
    const refused = await forget();
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining(`1 servers encrypt with the key '${OLD_ID}'`),
    ]);
    expect(await isNoted()).toBe(true);
  } finally {
    await server.close();
  }
});

test("a key is removed as soon as the server that encrypted with it has stopped, beside others", async () => {
  const server = await startServer([NEW, OLD]);
  try {
    expect(await forget()).toMatchObject({ code: 0 });
    expect(await isNoted()).toBe(false);
  } finally {
    await server.close();
  }
});

test("a server stops in order even if the record of its key can't be deleted", async () => {
  const own = await freshDatabase();
  const server = await startTestServer({
    connectionString: own.connectionString,
    encryptionKeys: keysOf(NEW),
  });
  await own.drop();
  await expect(server.close()).resolves.toBeUndefined();
});

test("a key is not removed if a server encrypted with it after the check, and stopped", async () => {
  await (await startServer([OLD, NEW])).close();
  const holding = new pg.Client({ connectionString: database.connectionString });
  await holding.connect();
  await holding.query("begin; lock table threadloom.checkpoint_writes");
  const forgetting = forget();
  await eventually("the check has reached the locked table", async () => {
    const waiting = await query(
      database,
      "select from pg_locks where not granted and relation = 'threadloom.checkpoint_writes'::regclass",
    );
    return waiting.length > 0;
  });
  const server = await startServer([OLD, NEW]);
  const { status } = await apiOf(server).post("/assistants", {
    graph_id: "counter",
    context: { said: "it" },
  });
  await server.close();
  await holding.end();
  expect(status).toBe(200);
  expect((await forgetting).stderr).toContain(`encrypt with the key '${OLD_ID}', or did so until now`);
  expect(await isNoted()).toBe(true);
});
