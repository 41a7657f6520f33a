import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ENCRYPTED_TABLES, type WalkedTable } from "../../../src/server/key-rotation/tables.ts";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { keysOf } from "../../helpers/encryption.ts";
import { encryptionCommand, type EncryptionStatus } from "../../helpers/encryption-command.ts";
import { query } from "../../helpers/query.ts";

/** Encrypted values belong to their rows: write access to the database is not enough to show one row's content in another row. */

const KEY = "a key of a test, of 32 bytes ...";
const CHOSEN = ["secret"];
const PROJECT = fileURLToPath(new URL("./project/with-users.json", import.meta.url));
const [MINE, THEIRS] = ["canary-5e90-mine", "canary-71bd-theirs"];

interface Site {
  database: FreshDatabase;
  server: TestServer;
  api: Api;
}

const startOn = async (database: FreshDatabase, ...keys: string[]): Promise<Site> => {
  const server = await startTestServer({
    connectionString: database.connectionString,
    graphConfigFile: PROJECT,
    projectKeys: { webhooks: { url: { disable_loopback: false } } },
    encryptionKeys: keys.flatMap(keysOf),
    encryptedMetadataKeys: CHOSEN,
  });
  return { database, server, api: apiOf(server) };
};

const command = ({ connectionString }: FreshDatabase, keys: string[], ...argv: string[]) =>
  encryptionCommand({ connectionString, keys, metadataKeys: CHOSEN }, ...argv);
const status = async (database: FreshDatabase, ...keys: string[]): Promise<EncryptionStatus> =>
  JSON.parse((await command(database, keys, "status", "--json")).written) as EncryptionStatus;

interface Conversation {
  /** One has stopped at a question, one has ended with an error. */
  threads: [string, string];
  assistantId: string;
  cronId: string;
  /** The word in its messages, and the namespace of its item. */
  word: string;
  side: string;
}

const aConversation = async (
  { api, server, database }: Site,
  word: string,
  side: string,
): Promise<Conversation> => {
  const configured = { config: { configurable: { said: word } }, metadata: { secret: word, side } };
  const { body: assistant } = await api.post<{ assistant_id: string }>("/assistants", {
    graph_id: "whispers",
    ...configured,
  });
  const words = Object.fromEntries(
    ["message", "large", "custom", "interrupt", "answered", "error"].map((place) => [place, word]),
  );
  const run = {
    assistant_id: assistant.assistant_id,
    input: { words, messages: Array.from({ length: 4 }, () => ({ role: "user", content: word })) },
    ...configured,
    stream_resumable: true,
    webhook: `http://127.0.0.1:9/${word}`,
  };
  const threads = [await api.aThread(configured), await api.aThread(configured)] as [string, string];
  for (const threadId of threads) await api.aFinishedRun(threadId, run);
  await api.aFinishedRun(threads[1], { ...run, input: undefined, command: { resume: word } });
  const cron = await api.post<{ cron_id: string }>("/runs/crons", { ...run, schedule: "0 0 1 1 *" });
  await server.client.put("/store/items").send({ namespace: [word], key: "one", value: { said: word } });
  await eventually("the webhooks have failed", async () => {
    const deliveries = await query<{ failures: number }>(
      database,
      "select failures from threadloom.deliveries",
    );
    return deliveries.every(({ failures }) => failures > 0);
  });
  // Prevents another try in this test.
  await query(database, "update threadloom.deliveries set due_at = now() + interval '1 day'");
  return { threads, assistantId: assistant.assistant_id, cronId: cron.body.cron_id, word, side };
};

/** The parts of a conversation that the API shows from table rows, including errors. */
const shownOf = async (
  { api, server, database }: Site,
  { threads, assistantId, cronId, word, side }: Conversation,
  table: string,
): Promise<string> => {
  const get = async (path: string) => (await api.get(path)).text;
  const post = async (path: string, body: object) => (await api.post(path, body)).text;
  const ofRuns = async (show: (path: string) => Promise<string>): Promise<string[]> => {
    const runs = await query<{ path: string }>(
      database,
      `select '/threads/' || thread_id || '/runs/' || run_id as path from threadloom.runs
       where thread_id = any($1::uuid[]) order by run_id`,
      [threads],
    );
    return await Promise.all(runs.map(({ path }) => show(path)));
  };
  const all = async (): Promise<string[]> => {
    if (table.startsWith("assistant"))
      return [
        await get(`/assistants/${assistantId}`),
        await post(`/assistants/${assistantId}/versions`, {}),
        await post("/assistants/search", { metadata: { side }, select: ["config", "context", "metadata"] }),
      ];
    if (table === "crons") return [await get(`/runs/crons/${cronId}`)];
    if (table === "store_items")
      return [
        await get(`/store/items?namespace=${word}&key=one`),
        await post("/store/items/search", { namespace_prefix: [word] }),
      ];
    if (table === "runs") return [...(await ofRuns(get)), await get(`/threads/${threads[1]}/runs`)];
    if (table === "run_events")
      return await ofRuns(async (path) => {
        const headers = { "last-event-id": "-1" };
        return await (await fetch(`${server.url}${path}/stream`, { headers })).text();
      });
    if (table === "run_traces") return await ofRuns((path) => get(`${path}/trace`));
    if (table === "deliveries")
      return await Promise.all(threads.map((id) => post("/webhooks/deliveries/search", { thread_id: id })));
    return [
      ...(await Promise.all(threads.map((id) => get(`/threads/${id}`)))),
      ...(await Promise.all(threads.map((id) => get(`/threads/${id}/history?limit=100`)))),
      await post("/threads/search", { ids: threads }),
    ];
  };
  return (await all()).join("\n");
};

/** SQL for the rows of a table that belong to a conversation. */
const rowsOf = ({ name }: WalkedTable, { threads, assistantId, cronId, word }: Conversation): string => {
  if (name.startsWith("assistant")) return `assistant_id = '${assistantId}'`;
  if (name === "crons") return `cron_id = '${cronId}'`;
  if (name === "store_items") return `namespace = '{${word}}'`;
  return `thread_id in ('${threads.join("', '")}')`;
};

/** Copies a column's values from another conversation, runs the work, and restores the values. Returns the number of rows. */
const withMoved = async (
  { database }: Site,
  table: WalkedTable,
  column: string,
  { from, to }: { from: Conversation; to: Conversation },
  work: () => Promise<void>,
): Promise<number> => {
  const key = Object.keys(table.key).join(", ");
  const same = Object.keys(table.key)
    .map((name) => `t.${name} = n.${name}`)
    .join(" and ");
  const type = table.columns.find(([name]) => name === column)?.[1];
  const text = type === "bytea" ? `encode(${column}, 'escape')` : `${column}::text`;
  const encryptedOf = (conversation: Conversation) =>
    `select ${key}, ${column} as value, row_number() over (order by ${key}) as place from threadloom.${table.name}
     where ${rowsOf(table, conversation)} and ${text} like '%enc1:%'`;
  const store = `update threadloom.${table.name} t set ${column} =`;
  await query(database, `create table kept as ${encryptedOf(to)}`);
  const moved = await query(
    database,
    `${store} o.value from (${encryptedOf(from)}) o join (${encryptedOf(to)}) n on n.place = o.place
     where ${same} returning 1`,
  );
  if (moved.length > 0) await work();
  await query(database, `${store} n.value from kept n where ${same}`);
  await query(database, "drop table kept");
  return moved.length;
};

describe("an encrypted value", () => {
  let site: Site;
  let mine: Conversation;
  let theirs: Conversation;
  beforeAll(async () => {
    site = await startOn(await freshDatabase(), KEY);
    mine = await aConversation(site, MINE, "a");
    theirs = await aConversation(site, THEIRS, "b");
  });
  afterAll(async () => {
    await site.server.close();
    await site.database.drop();
  });

  test("that is moved to another row is not shown to readers of that row, in any column", async () => {
    const moved: string[] = [];
    for (const table of ENCRYPTED_TABLES) {
      expect(await shownOf(site, mine, table.name)).toContain(MINE);
      for (const [column] of table.columns) {
        const rows = await withMoved(site, table, column, { from: theirs, to: mine }, async () => {
          const shown = await shownOf(site, mine, table.name);
          expect([table.name, column, shown.includes(THEIRS)]).toEqual([table.name, column, false]);
        });
        if (rows > 0) moved.push(`${table.name}.${column}`);
      }
    }
    // test/platform/encryption/columns.test.ts covers the other columns.
    expect(moved).toEqual([
      "assistants.config",
      "assistants.metadata",
      "assistant_versions.config",
      "assistant_versions.metadata",
      "crons.metadata",
      "crons.payload",
      "crons.user_id",
      "crons.auth_user",
      "store_items.value",
      "threads.metadata",
      "threads.config",
      "threads.interrupts",
      "threads.error",
      "runs.metadata",
      "runs.config",
      "runs.kwargs",
      "runs.error",
      "runs.auth_user",
      "runs.webhook",
      "run_events.data",
      "run_traces.spans",
      "deliveries.error",
      "deliveries.metadata",
      "deliveries.config",
      "deliveries.kwargs",
      "deliveries.url",
      "deliveries.last_error",
      "deliveries.final_values",
      "checkpoint_contents.content",
      "checkpoints.metadata",
      "checkpoints.record",
      "checkpoints.writes",
      "checkpoint_writes.writes",
    ]);
    expect(await status(site.database, KEY)).toMatchObject({ unreadable: 0 });
  });

  test("of a thread is encrypted for its copy, which stays readable without the thread and with another key", async () => {
    const { api, database } = site;
    const original = await api.aThread({ metadata: { secret: MINE } });
    const run = { assistant_id: "whispers", config: { configurable: { said: MINE } } };
    await api.aFinishedRun(original, { ...run, input: { words: { interrupt: MINE } } });
    await api.aFinishedRun(original, { ...run, command: { resume: MINE } });
    const record = await api.thread(original);
    const { body: copy } = await api.post<{ thread_id: string }>(`/threads/${original}/copy`);
    const copied = { ...record, thread_id: copy.thread_id };
    const times = { created_at: expect.any(String) as string, updated_at: expect.any(String) as string };
    expect(copy).toMatchObject({ ...copied, ...times });
    expect(JSON.stringify(copied)).toContain(MINE);
    await api.remove(`/threads/${original}`);
    expect(await api.thread(copy.thread_id)).toEqual(copy);
    expect(await status(database, KEY)).toMatchObject({ unreadable: 0 });
    const next = "the newest key of a test, of 32 ";
    const reencrypted = await command(database, [next, KEY], "rotate", "--json");
    expect(JSON.parse(reencrypted.written)).toMatchObject({ unreadable: 0 });
    // This server has only the older key, so the rows are returned to it.
    expect(await command(database, [KEY, next], "rotate")).toMatchObject({ code: 0 });
    expect(await api.thread(copy.thread_id)).toEqual(copy);
  });
});
