import { afterAll, beforeAll, expect, test } from "vitest";
import { ENCRYPTED_COLUMNS } from "../../../src/platform/encryption/columns.ts";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer } from "../../helpers/app.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { encryptionCommand, type EncryptionStatus } from "../../helpers/encryption-command.ts";
import { cipherOf, keysOf } from "../../helpers/encryption.ts";
import { query } from "../../helpers/query.ts";

/** Key rotation beside callers' texts that look encrypted, and beside rows that it can't finish. */

const OLD = "an old key of a test, 32 bytes .";
const NEW = "a key of a test, of 32 bytes ...";
const LOST = "a lost key of a test, 32 bytes .";
const CHOSEN = ["secret"];
const [ITEM] = ENCRYPTED_COLUMNS.store_items.value.places({ namespace: ["a"], key: "one" });
const [OLD_ID, LOST_ID] = [OLD, LOST].map((key) => cipherOf(key).keyId);

let database: FreshDatabase;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(async () => {
  await database.drop();
});

const withServer = async <Result>(keys: string[], work: (api: Api) => Promise<Result>): Promise<Result> => {
  const server = await startTestServer({
    connectionString: database.connectionString,
    encryptionKeys: keys.flatMap(keysOf),
    encryptedMetadataKeys: CHOSEN,
  });
  try {
    return await work(apiOf(server));
  } finally {
    await server.close();
  }
};
const command = (...argv: string[]) =>
  encryptionCommand(
    { connectionString: database.connectionString, keys: [NEW, OLD], metadataKeys: CHOSEN },
    ...argv,
  );
const rowsOfOld = async (): Promise<number | undefined> => {
  const { written } = await command("status", "--json");
  return (JSON.parse(written) as EncryptionStatus).keys.find(({ id }) => id === OLD_ID)?.rows;
};

test("a caller's text never keeps an older key needed, wherever it names that key", async () => {
  const text = `enc1:${OLD_ID}:${"A".repeat(64)}`;
  const metadata = {
    said: `see ${text}`,
    quoted: `"${text}"`,
    [text]: [text],
    deep: { [text]: `${text}\n` },
  };
  const threadId = await withServer([OLD], async (api) => {
    const id = await api.aThread({ metadata: { ...metadata, secret: "said" } });
    await api.post("/assistants", {
      graph_id: "counter",
      metadata,
      context: { [text]: text },
      config: { configurable: { [text]: text } },
    });
    return id;
  });
  await withServer([NEW, OLD], async (api) => {
    await api.patch(`/threads/${threadId}`, { metadata: { later: text } });
  });
  expect(await rowsOfOld()).toBeGreaterThan(0);
  expect(await command("rotate")).toMatchObject({ code: 0 });
  expect(await rowsOfOld()).toBe(0);
  const again = await command("rotate", "--json");
  expect(JSON.parse(again.written)).toMatchObject({ reencrypted: 0, plain: 0 });
  await withServer([NEW, OLD], async (api) => {
    const { body } = await api.get<{ metadata: unknown }>(`/threads/${threadId}`);
    expect(body.metadata).toEqual({ ...metadata, secret: "said", later: text });
  });
});

test("a column without its key does not keep other columns of its row from the newest key", async () => {
  const threadId = await withServer([NEW, OLD], (api) => api.aThread());
  const key = { thread_id: threadId };
  const config = cipherOf(OLD).encrypt('"said"', ENCRYPTED_COLUMNS.threads.config.places(key)[0]);
  const secret = cipherOf(LOST).encrypt('"said"', ENCRYPTED_COLUMNS.threads.metadata.places(key)[0]);
  await query(database, "update threadloom.threads set metadata = $2, config = $3 where thread_id = $1", [
    threadId,
    JSON.stringify({ secret }),
    JSON.stringify({ configurable: { said: config } }),
  ]);
  const reencrypted = await command("rotate");
  expect([reencrypted.code, reencrypted.stderr]).toEqual([
    1,
    expect.stringContaining(`1 rows are encrypted with keys that are not configured (${LOST_ID})`),
  ]);
  expect(await rowsOfOld()).toBe(0);
  const [row] = await query<{ metadata: unknown }>(
    database,
    "delete from threadloom.threads where thread_id = $1 returning metadata",
    [threadId],
  );
  expect(row?.metadata).toEqual({ secret });
});

test("the command fails while rows can't be decrypted, since they may need an older key", async () => {
  const encrypted = cipherOf(OLD).encrypt('{"said":"hello"}', ITEM);
  const damaged = `${encrypted.slice(0, 20)}${encrypted[20] === "A" ? "B" : "A"}${encrypted.slice(21)}`;
  await query(
    database,
    "insert into threadloom.store_items (namespace, key, value) values ('{a}', 'one', to_jsonb($1::text))",
    [damaged],
  );
  const reencrypted = await command("rotate");
  expect([reencrypted.code, reencrypted.stderr]).toEqual([
    1,
    expect.stringContaining("1 rows can't be decrypted although their keys are configured"),
  ]);
  expect(await rowsOfOld()).toBe(1);
  expect(await command("forget", OLD_ID ?? "")).toMatchObject({ code: 1 });
});

test("the command fails while a server still encrypts with an older key", async () => {
  await query(database, "delete from threadloom.store_items");
  // A server whose first key is the older one stores this row each time after the command has stored it.
  const encrypted = cipherOf(OLD).encrypt('{"said":"hello"}', ITEM);
  await query(
    database,
    `create function store_again() returns trigger language plpgsql as $$ begin
       new.value := old.value; return new; end $$`,
  );
  await query(
    database,
    "insert into threadloom.store_items (namespace, key, value) values ('{a}', 'one', to_jsonb($1::text))",
    [encrypted],
  );
  await query(
    database,
    "create trigger again before update on threadloom.store_items for each row execute function store_again()",
  );
  const reencrypted = await command("rotate");
  expect([reencrypted.code, reencrypted.stderr]).toEqual([
    1,
    expect.stringContaining(`1 rows need the key '${OLD_ID}'`),
  ]);
  await query(database, "drop trigger again on threadloom.store_items");
  expect(await command("rotate")).toMatchObject({ code: 0 });
});
