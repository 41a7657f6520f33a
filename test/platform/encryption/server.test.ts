import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { freshDatabase } from "../../helpers/database.ts";
import { cipherOf, keysOf } from "../../helpers/encryption.ts";
import { query } from "../../helpers/query.ts";

const OLD = "an old key of a test, 32 bytes .";
const NEW = "a key of a test, of 32 bytes ...";
const FIXTURES = fileURLToPath(new URL("../../fixtures/", import.meta.url));

const said = (content: string) => ({ input: { messages: [{ role: "user", content }] } });

describe("a server with a key", () => {
  let server: TestServer;
  let client: Client;
  beforeAll(async () => {
    server = await startTestServer({ encryptionKeys: keysOf(OLD), encryptedMetadataKeys: ["secret"] });
    client = new Client({ apiUrl: server.url });
  });
  afterAll(() => server.close());

  test("stores a repeated configuration only once", async () => {
    const { thread_id: threadId } = await client.threads.create();
    const options = { ...said("hello"), config: { configurable: { model: "small" } } };
    await client.runs.wait(threadId, "two-step", options);
    await client.runs.wait(threadId, "two-step", options);
    const rows = await query<{ config: unknown; changed: boolean }>(
      server,
      `select config, replaced_config is not null as changed from threadloom.runs where thread_id = $1 order by created_at`,
      [threadId],
    );
    expect(rows.map(({ changed }) => changed)).toEqual([true, false]);
    expect(JSON.stringify(rows)).not.toContain("small");
  });

  test("costs a long conversation no more for each turn than a server without a key", async () => {
    const { thread_id: threadId } = await client.threads.create();
    const bytes: number[] = [];
    for (let turn = 0; turn < 24; turn++) {
      await client.runs.wait(threadId, "two-step", said("x".repeat(500)));
      const [size] = await query<{ bytes: string }>(
        server,
        `select (select sum(octet_length(content)) from threadloom.checkpoint_contents where thread_id = $1)
          + (select sum(octet_length(record)) from threadloom.checkpoints where thread_id = $1) as bytes`,
        [threadId],
      );
      bytes.push(Number(size?.bytes));
    }
    const added = [7, 15, 23].map((turn) => bytes[turn]! - (bytes[turn - 8] ?? 0));
    expect(Math.max(...added)).toBeLessThan(Math.min(...added) * 1.5);
  });

  test("reports that another server lacks the key, and which key", async () => {
    const { connectionString } = server;
    const id = cipherOf(OLD).keyId;
    await expect(startTestServer({ connectionString, encryptionKeys: [] })).rejects.toThrow(
      `Refusing to start: this database holds values encrypted with the key '${id}', and no key is set: LANGGRAPH_AES_KEY is missing or empty. Set it to this key.`,
    );
    await expect(startTestServer({ connectionString, encryptionKeys: keysOf(NEW) })).rejects.toThrow(
      `LANGGRAPH_AES_KEY (${cipherOf(NEW).keyId}). Add it behind the key that is to encrypt from now on.`,
    );
  });
});

test("a server with a newer key continues a thread of a server with an older key", async () => {
  const database = await freshDatabase();
  try {
    const { connectionString } = database;
    const encryptedMetadataKeys = ["secret"];
    const older = await startTestServer({
      connectionString,
      encryptionKeys: keysOf(OLD),
      encryptedMetadataKeys,
    });
    const client = new Client({ apiUrl: older.url });
    const { thread_id: threadId } = await client.threads.create({ metadata: { secret: "kept" } });
    await client.runs.wait(threadId, "two-step", said("before"));
    // Beside the newer server it would take runs that it can't decrypt.
    await older.close();
    const newer = await startTestServer({
      connectionString,
      encryptionKeys: [...keysOf(NEW), ...keysOf(OLD)],
      encryptedMetadataKeys,
    });
    try {
      const other = new Client({ apiUrl: newer.url });
      await other.runs.wait(threadId, "two-step", said("afterwards"));
      const { values } = await other.threads.getState<{ messages: { content: string }[] }>(threadId);
      const contents = ["before", "first", "second", "afterwards", "first", "second"];
      expect(values.messages.map(({ content }) => content)).toEqual(contents);
      expect((await other.threads.get(threadId)).metadata).toMatchObject({ secret: "kept" });
    } finally {
      await newer.close();
    }
    const keys = await query<{ key_id: string }>(database, "select key_id from threadloom.encryption_keys");
    expect(keys.map((row) => row.key_id).sort()).toEqual([cipherOf(OLD).keyId, cipherOf(NEW).keyId].sort());
  } finally {
    await database.drop();
  }
});

test("a server with a key refuses to store vectors", async () => {
  const folder = await mkdtemp(join(tmpdir(), "threadloom-test-"));
  try {
    const graphConfigFile = join(folder, "langgraph.json");
    const graphs = { counter: `${FIXTURES}counter.ts:graph` };
    await writeFile(
      join(folder, "embed.mjs"),
      "export const embed = async (texts) => texts.map(() => [1, 2]);\n",
    );
    const store = { index: { dims: 2, embed: "./embed.mjs:embed" } };
    await writeFile(graphConfigFile, JSON.stringify({ graphs, store }));
    await expect(startTestServer({ graphConfigFile, encryptionKeys: keysOf(NEW) })).rejects.toThrow(
      "store.index of langgraph.json stores vectors, which reveal their texts and can't be encrypted",
    );
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("data from before the first key are read and continued", async () => {
  const database = await freshDatabase();
  try {
    const { connectionString } = database;
    const before = await startTestServer({ connectionString, encryptionKeys: [] });
    const client = new Client({ apiUrl: before.url });
    const { thread_id: threadId } = await client.threads.create();
    await client.runs.wait(threadId, "two-step", said("before"));
    await before.close();
    const after = await startTestServer({ connectionString, encryptionKeys: keysOf(NEW), graphProcesses: 0 });
    try {
      const later = new Client({ apiUrl: after.url });
      await later.runs.wait(threadId, "two-step", said("afterwards"));
      const history = await later.threads.getHistory(threadId);
      expect(JSON.stringify(history[0]?.values)).toMatch(/before.*afterwards/);
      expect(history.length).toBe(8);
    } finally {
      await after.close();
    }
  } finally {
    await database.drop();
  }
});
