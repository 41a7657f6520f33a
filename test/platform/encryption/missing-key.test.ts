import { afterAll, beforeAll, expect, test } from "vitest";
import { apiOf, saying, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { encryptionCommand, type EncryptionStatus } from "../../helpers/encryption-command.ts";
import { cipherOf, keysOf } from "../../helpers/encryption.ts";
import { query } from "../../helpers/query.ts";

/** Rows encrypted with a key that is not configured: it may be removed, and configured again. */

const OLD = "an old key of a test, 32 bytes .";
const NEW = "a key of a test, of 32 bytes ...";
const SAID = "canary-7be2-said";
const CHOSEN = ["secret"];

let database: FreshDatabase;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(async () => {
  await database.drop();
});

const withServer = async <Result>(
  keys: string[],
  work: (api: Api, server: TestServer) => Promise<Result>,
): Promise<Result> => {
  const server = await startTestServer({
    connectionString: database.connectionString,
    encryptionKeys: keys.flatMap(keysOf),
    encryptedMetadataKeys: CHOSEN,
  });
  try {
    return await work(apiOf(server), server);
  } finally {
    await server.close();
  }
};
const command = (keys: string[], ...argv: string[]) =>
  encryptionCommand({ connectionString: database.connectionString, keys, metadataKeys: CHOSEN }, ...argv);
const forgottenBehindTheServer = async (key: string): Promise<void> => {
  await query(database, "delete from threadloom.encryption_keys where key_id = $1", [cipherOf(key).keyId]);
};

test("values encrypted with an unconfigured key are reported with its id, stay unchanged, and decrypt when the key returns", async () => {
  const shown = async (api: Api, threadId: string, assistantId: string): Promise<string> => {
    const answers = [
      await api.get(`/threads/${threadId}`),
      await api.get(`/threads/${threadId}/runs`),
      await api.get(`/threads/${threadId}/history`),
      await api.get(`/assistants/${assistantId}`),
      await api.get("/store/items?namespace=a&key=one"),
    ];
    for (const { status } of answers) expect(status).toBe(200);
    return JSON.stringify(answers.map(({ body }) => body));
  };
  const metadata = { secret: SAID, deep: [{ secret: SAID }], open: "yes" };
  const [threadId, assistantId, before] = await withServer([OLD, NEW], async (api, server) => {
    const thread = await api.aThread({ metadata });
    const { body } = await api.post<{ assistant_id: string }>("/assistants", {
      graph_id: "counter",
      metadata,
      context: { said: SAID },
    });
    const { run_id: runId } = await api.aRun(thread, {
      assistant_id: "counter",
      input: saying(SAID),
      metadata,
      config: { configurable: { said: SAID } },
      context: { said: SAID },
    });
    await api.untilRunIs(thread, runId, "success");
    await server.client.put("/store/items").send({ namespace: ["a"], key: "one", value: { said: SAID } });
    return [thread, body.assistant_id, await shown(api, thread, body.assistant_id)] as const;
  });
  await forgottenBehindTheServer(OLD);

  const sealedWithOld = async (): Promise<EncryptionStatus> => {
    const { code, written } = await command([NEW], "status", "--json");
    expect(code).toBe(0);
    return JSON.parse(written) as EncryptionStatus;
  };
  const found = await sealedWithOld();
  const old = found.keys.find(({ id }) => id === cipherOf(OLD).keyId);
  expect(old).toMatchObject({ encrypts: false, configured: false });
  expect(old?.rows).toBeGreaterThan(6);
  expect(found.unreadable).toBe(0);

  const reencrypted = await command([NEW], "rotate");
  expect(reencrypted.code).toBe(1);
  expect(reencrypted.written).toContain(`${old?.id}  ${old?.rows} rows  not configured`);
  expect(reencrypted.stderr).toContain(
    `${old?.rows} rows are encrypted with keys that are not configured (${old?.id})`,
  );
  expect((await sealedWithOld()).keys).toContainEqual(old);

  await withServer([NEW, OLD], async (api) => {
    expect(await shown(api, threadId, assistantId)).toBe(before);
  });
  expect((await command([NEW, OLD], "rotate")).code).toBe(0);
  await withServer([NEW], async (api) => {
    expect(await shown(api, threadId, assistantId)).toBe(before);
  });
});

test("before the first key, the status counts unencrypted values, and reports keys that are not configured", async () => {
  const own = await freshDatabase();
  try {
    const { connectionString } = own;
    const server = await startTestServer({ connectionString, encryptionKeys: [] });
    await apiOf(server)
      .aThread({ metadata: { open: "yes" } })
      .finally(() => server.close());
    await query(
      own,
      `insert into threadloom.store_items (namespace, key, value) values ('{a}', 'one', '{"said": "${SAID}"}')`,
    );
    const { code, written } = await encryptionCommand({ connectionString, keys: [] }, "status");
    expect([code, written]).toEqual([
      0,
      expect.stringMatching(/^[1-9]\d* rows hold unencrypted data that a key would encrypt/),
    ]);
    const refused = await encryptionCommand({ connectionString, keys: [] }, "rotate");
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining("names no key to encrypt with"),
    ]);

    const encrypted = cipherOf(OLD).encrypt(JSON.stringify({ said: SAID }), "json");
    await query(own, "update threadloom.store_items set value = to_jsonb($1::text)", [encrypted]);
    const found = await encryptionCommand({ connectionString, keys: [] }, "status", "--json");
    expect(JSON.parse(found.written)).toMatchObject({
      keys: [{ id: cipherOf(OLD).keyId, encrypts: false, configured: false, rows: 1 }],
      unreadable: 0,
    });
  } finally {
    await own.drop();
  }
});

test("a key that is removed while a server encrypts with it is needed again, and the log says so", async () => {
  const own = await freshDatabase();
  const { connectionString } = own;
  const server = await startTestServer({ connectionString, encryptionKeys: keysOf(OLD) });
  try {
    await query(own, "delete from threadloom.encryption_keys");
    await eventually("the key is noted again", async () => {
      const rows = await query(own, "select key_id from threadloom.encryption_keys");
      return rows.length === 1;
    });
    await eventually("the log says so", () =>
      server.lines.join().includes("was forgotten while this server encrypts with it"),
    );
  } finally {
    await server.close();
    await own.drop();
  }
});
