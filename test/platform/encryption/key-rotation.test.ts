import { fileURLToPath } from "node:url";
import { Client } from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ENCRYPTED_TABLES } from "../../../src/server/key-rotation/tables.ts";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer, type TestServerOptions } from "../../helpers/app.ts";
import { cipherOf, keysOf } from "../../helpers/encryption.ts";
import { encryptionCommand, type EncryptionStatus } from "../../helpers/encryption-command.ts";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { query } from "../../helpers/query.ts";

const OLD = "an old key of a test, 32 bytes .";
const NEW = "a key of a test, of 32 bytes ...";
const SECRET = "canary-41d7";
const NEWEST = "the newest key of a test, of 32 ";
const CHOSEN = ["secret"];
const PROJECT = fileURLToPath(new URL("./project/langgraph.json", import.meta.url));

let database: FreshDatabase;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(async () => {
  await database.drop();
});

const withServer = async <Result>(
  options: TestServerOptions,
  work: (server: TestServer, api: Api) => Promise<Result>,
): Promise<Result> => {
  const server = await startTestServer({
    connectionString: database.connectionString,
    graphConfigFile: PROJECT,
    projectKeys: { webhooks: { url: { disable_loopback: false } } },
    ...options,
  });
  try {
    return await work(server, apiOf(server));
  } finally {
    await server.close();
  }
};

let chosen = CHOSEN;

const command = (keys: string[], ...argv: string[]) =>
  encryptionCommand({ connectionString: database.connectionString, keys, metadataKeys: chosen }, ...argv);
const status = async (keys: string[], verb = "status"): Promise<EncryptionStatus> => {
  const { code, written, stderr } = await command(keys, verb, "--json");
  expect([code, stderr]).toEqual([0, verb === "status" ? "" : expect.any(String)]);
  return JSON.parse(written) as EncryptionStatus;
};

/** Writes a text into every column that may be encrypted. Returns its thread. */
const sayAll = async (server: TestServer, api: Api): Promise<string> => {
  const metadata = { secret: SECRET, open: "yes" };
  const assistant = await api.post<{ assistant_id: string }>("/assistants", {
    graph_id: "whispers",
    metadata,
    context: { said: SECRET },
  });
  const { assistant_id } = assistant.body;
  const saidOften = Array.from({ length: 4 }, () => ({ role: "user", content: SECRET }));
  const words = Object.fromEntries(
    ["message", "large", "custom", "item", "interrupt", "answered", "error", "tool"].map((place) => [
      place,
      SECRET,
    ]),
  );
  const run = {
    assistant_id,
    input: { words, messages: saidOften },
    context: { said: SECRET },
    metadata: { tone: SECRET },
  };
  const aThread = async (): Promise<string> =>
    (await api.post<{ thread_id: string }>("/threads", { metadata })).body.thread_id;
  const [threadId, failed] = [await aThread(), await aThread()];
  for (const id of [threadId, failed])
    await api.post(`/threads/${id}/runs/wait`, { ...run, stream_resumable: true, webhook: `/${SECRET}` });
  await api.post(`/threads/${failed}/runs/wait`, {
    ...run,
    input: undefined,
    command: { resume: SECRET },
    webhook: `http://127.0.0.1:9/${SECRET}`,
  });
  await api.post("/runs/crons", { ...run, schedule: "0 0 1 1 *", metadata });
  await server.client
    .put("/store/items")
    .send({ namespace: ["a", "b,c"], key: "one", value: { said: SECRET } });
  const answer = await a2a(api, "SendMessage", {
    message: { messageId: "m", role: "ROLE_USER", parts: [{ data: { words: {} } }] },
    configuration: {
      taskPushNotificationConfig: { id: SECRET, url: `http://127.0.0.1:9/${SECRET}`, token: SECRET },
    },
  });
  taskId = answer.task.id;
  await eventually("the webhooks have failed", async () => {
    const rows = await query<{ failures: number }>(server, "select failures from threadloom.deliveries");
    return rows.length > 0 && rows.every(({ failures }) => failures > 0);
  });
  // Another server would make the next try, and store its failure with its own key.
  await query(server, "update threadloom.deliveries set due_at = now() + interval '1 day'");
  return threadId;
};

const a2a = async (api: Api, method: string, params: object) => {
  const answer = await fetch(`${api.url}/a2a/whispers`, {
    method: "POST",
    headers: { "content-type": "application/json", "a2a-version": "1.0" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  return ((await answer.json()) as { result: { task: { id: string } } }).result;
};
let taskId: string;

/** Everything that the API shows of a thread, and of records without a thread. */
const shown = async (api: Api, threadId: string): Promise<string> => {
  const { body: runs } = await api.get<{ run_id: string }[]>(`/threads/${threadId}/runs?limit=100`);
  const answers = await Promise.all([
    api.get(`/threads/${threadId}`),
    api.get(`/threads/${threadId}/history?limit=100`),
    api.post("/threads/search", { metadata: { open: "yes" } }),
    api.post("/assistants/search", { metadata: { open: "yes" }, limit: 100 }),
    api.post("/runs/crons/search", {}),
    api.post("/store/items/search", { namespace_prefix: [] }),
    api.post("/webhooks/deliveries/search", {}),
  ]);
  const traces = await Promise.all(
    runs.map(async ({ run_id }) => (await api.get(`/threads/${threadId}/runs/${run_id}/trace`)).body),
  );
  const pushes = await a2a(api, "ListTaskPushNotificationConfigs", { taskId });
  const shownRuns = [...runs].sort((a, b) => a.run_id.localeCompare(b.run_id));
  // Webhooks are retried, so their deliveries change.
  return JSON.stringify(
    [pushes, traces, shownRuns, ...answers.map(({ body }) => body)],
    (key, value: unknown) => (/attempt$|failures|updated_at/.test(key) ? undefined : value),
  );
};

/** The places where the word is in plain text. */
const inTheClear = async (): Promise<string[]> => {
  const found: string[] = [];
  for (const { name, columns } of ENCRYPTED_TABLES) {
    for (const [column, type] of columns) {
      const text = type === "bytea" ? `encode(${column}, 'escape')` : `${column}::text`;
      const [row] = await query<{ found: boolean }>(
        database,
        `select exists (select from threadloom.${name} where ${text} like '%${SECRET}%') as found`,
      );
      if (row?.found) found.push(`${name}.${column}`);
    }
  }
  return found;
};

describe("data from before the first key", () => {
  let threadId: string;
  let before: string;

  test("are reported by the status, encrypted beside a running server, and read as before", async () => {
    [threadId, before] = await withServer({ encryptionKeys: [] }, async (server, api) => {
      const id = await sayAll(server, api);
      return [id, await shown(api, id)] as const;
    });
    const plain = await inTheClear();
    expect(plain).toEqual(
      expect.arrayContaining([
        "assistants.context",
        "assistants.metadata",
        "assistant_versions.context",
        "crons.payload",
        "store_items.value",
        "threads.metadata",
        "runs.kwargs",
        "runs.context",
        "runs.webhook",
        "run_events.data",
        "deliveries.url",
        "deliveries.kwargs",
        "deliveries.final_values",
        "deliveries.configuration",
        "checkpoint_contents.content",
        "checkpoints.record",
        "threads.interrupts",
        "threads.error",
        "runs.error",
        "checkpoints.metadata",
        "checkpoint_writes.writes",
      ]),
    );
    await withServer({ encryptionKeys: keysOf(OLD), encryptedMetadataKeys: CHOSEN }, async (server, api) => {
      const found = await status([OLD]);
      expect(found.keys).toEqual([{ id: cipherOf(OLD).keyId, encrypts: true, configured: true, rows: 0 }]);
      expect(found.plain).toBeGreaterThan(20);
      const done = await status([OLD], "rotate");
      expect(done).toMatchObject({ plain: 0, busy: 0, unreadable: 0, reencrypted: found.plain });
      expect(await shown(api, threadId)).toBe(before);
      // The thread continues.
      const client = new Client({ apiUrl: server.url });
      await client.runs.wait(threadId, "whispers", { input: { words: {} } });
    });
    // The searchable fields of a run stay in plain text.
    expect(await inTheClear()).toEqual(["runs.metadata", "deliveries.metadata", "checkpoints.metadata"]);
  });

  test("are encrypted with a newer key later, and an older one can be removed when no row needs it", async () => {
    const old = cipherOf(OLD).keyId;
    before = await withServer(
      { encryptionKeys: keysOf(OLD), encryptedMetadataKeys: CHOSEN },
      async (_, api) => await shown(api, threadId),
    );
    expect(await command([NEW, OLD], "forget", cipherOf(NEW).keyId)).toMatchObject({ code: 1 });
    const refused = await command([NEW, OLD], "forget", old);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining("are still encrypted with the key"),
    ]);
    const both = { encryptionKeys: [...keysOf(NEW), ...keysOf(OLD)], encryptedMetadataKeys: CHOSEN };
    await withServer(both, async (_, api) => {
      const done = await status([NEW, OLD], "rotate");
      expect(done.keys).toEqual([
        { id: cipherOf(NEW).keyId, encrypts: true, configured: true, rows: done.reencrypted },
        { id: old, encrypts: false, configured: true, rows: 0 },
      ]);
      expect(await shown(api, threadId)).toBe(before);
      expect((await status([NEW, OLD], "rotate")).reencrypted).toBe(0);
    });
    expect(await command([NEW, OLD], "forget", old)).toMatchObject({ code: 0 });
    await withServer({ encryptionKeys: keysOf(NEW), encryptedMetadataKeys: CHOSEN }, async (server, api) => {
      expect(await shown(api, threadId)).toBe(before);
      const client = new Client({ apiUrl: server.url });
      await client.runs.wait(threadId, "whispers", { input: { words: {} } });
      expect((await command([NEW], "status")).written).toContain("encrypts from now on");
    });
  });
});

test("values that runs store meanwhile are not lost, and all are encrypted with the newest key in the end", async () => {
  const TURNS = 3;
  const said = { messages: [{ role: "user", content: SECRET }], words: {} };
  const turn = (api: Api, id: string) =>
    api.post(`/threads/${id}/runs/wait`, { assistant_id: "whispers", input: said, interrupt_after: ["say"] });
  const older = { encryptionKeys: keysOf(NEW), encryptedMetadataKeys: CHOSEN };
  const threads = await withServer(older, async (_, api) => {
    const ids = await Promise.all(Array.from({ length: 6 }, () => api.aThread()));
    await Promise.all(ids.map((id) => turn(api, id)));
    return ids;
  });
  const both = [NEWEST, NEW];
  const newer = { encryptionKeys: both.flatMap(keysOf), encryptedMetadataKeys: CHOSEN };
  await withServer(newer, async (_, api) => {
    const talking = Promise.all(
      threads.map(async (id) => {
        for (let turns = 1; turns < TURNS; turns++) await turn(api, id);
      }),
    );
    // An earlier statement may store a copy of an older row afterwards; then the command fails.
    const during = JSON.parse((await command(both, "rotate", "--json")).written) as EncryptionStatus;
    await talking;
    expect(during).toMatchObject({ busy: 0, unreadable: 0, plain: 0 });
    expect(await status(both, "rotate")).toMatchObject({ keys: [{ encrypts: true }, { rows: 0 }] });
    for (const id of threads) {
      const { values } = (await api.state(id)) as unknown as { values: { messages: unknown[] } };
      expect(values.messages).toHaveLength(2 * TURNS);
    }
  });
});

test("metadata that are no longer chosen are decrypted again, and found", async () => {
  chosen = [];
  const keys = [NEWEST, NEW];
  await withServer({ encryptionKeys: keys.flatMap(keysOf) }, async (_, api) => {
    const found = async () =>
      (await api.post<unknown[]>("/threads/search", { metadata: { secret: SECRET } })).body;
    expect(await found()).toHaveLength(0);
    expect((await status(keys, "rotate")).reencrypted).toBeGreaterThan(0);
    expect(await found()).toHaveLength(2);
    expect((await status(keys, "rotate")).reencrypted).toBe(0);
  }).finally(() => {
    chosen = CHOSEN;
  });
});

test("every column with encrypted values is included in key rotation", async () => {
  const columns = await query<{ table: string; column: string }>(
    database,
    `select table_name as table, column_name as column from information_schema.columns
     where table_schema = 'threadloom' and data_type in ('text', 'json', 'jsonb', 'bytea') order by 1, 2`,
  );
  const encrypted: string[] = [];
  for (const { table, column } of columns) {
    const [row] = await query<{ found: boolean }>(
      database,
      `select exists (select from threadloom.${table} t where t.${column}::text like any
         (array['%enc1:%', '\\\\x656e63313a%'])) as found`,
    );
    if (row?.found) encrypted.push(`${table}.${column}`);
  }
  const known = ENCRYPTED_TABLES.flatMap(({ name, columns }) =>
    columns.map(([column]) => `${name}.${column}`),
  );
  expect(encrypted.length).toBeGreaterThan(20);
  expect(encrypted.filter((column) => !known.includes(column))).toEqual(["encryption_keys.proof"]);
});
