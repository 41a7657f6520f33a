import { afterAll, beforeAll, expect, test } from "vitest";
import { encryptionKey } from "../../../src/platform/encryption/cipher.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { encryptionCommand } from "../../helpers/encryption-command.ts";
import { cipherOf, keysOf } from "../../helpers/encryption.ts";
import { startTestServer } from "../../helpers/app.ts";
import { query } from "../../helpers/query.ts";

const KEY = "a key of a test, of 32 bytes ...";

let database: FreshDatabase;
beforeAll(async () => {
  database = await freshDatabase();
  const { connectionString } = database;
  await (await startTestServer({ connectionString, encryptionKeys: keysOf(KEY) })).close();
});
afterAll(async () => {
  await database.drop();
});

const keys = Array.from({ length: 1_000 }, (_, index) => encryptionKey(Buffer.alloc(32, `${index} `)));

test("no key id begins with '-'", () => {
  expect(keys.filter(({ id }) => id.startsWith("-"))).toEqual([]);
  expect(keys.filter(({ id }) => id.startsWith("_")).length).toBeGreaterThan(0);
});

test.each([["-4Z3BS"], ["--", "-4Z3BS"]])(
  "a key is named by an id that begins with '-': %s %s",
  async (...argv) => {
    const { connectionString } = database;
    const options = { connectionString, keys: [KEY] };
    const unknown = await encryptionCommand(options, "forget", ...argv);
    expect([unknown.code, unknown.stderr]).toEqual([
      1,
      expect.stringContaining("No start needs the key '-4Z3BS'."),
    ]);
    expect(await query(database, "select key_id from threadloom.encryption_keys")).toEqual([
      { key_id: cipherOf(KEY).keyId },
    ]);
  },
);
