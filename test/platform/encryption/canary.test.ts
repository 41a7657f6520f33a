import { randomBytes } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@langchain/langgraph-sdk";
import { afterAll, describe, expect, test } from "vitest";
import { startEmbeddedPostgres } from "../../../src/platform/database/embedded/embedded.ts";
import { startTestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { TEST_KEYS } from "../../helpers/encryption.ts";
import { listeningLogger } from "../../helpers/parts.ts";
import { query } from "../../helpers/query.ts";
import { temporaryFolder } from "../../helpers/temporary-folder.ts";

const PROJECT = fileURLToPath(new URL("./project/with-users.json", import.meta.url));

/** Every place for a user's text, each with a word of its own, so a search names the place. */
const PLACES = [
  "message",
  "large",
  "custom",
  "item",
  "interrupt",
  "answered",
  "error",
  "tool",
  "input",
  "resume",
  "configurable",
  "context",
  "thread-metadata",
  "run-metadata",
  "nested-metadata",
  "assistant-config",
  "assistant-context",
  "assistant-metadata",
  "cron-input",
  "cron-metadata",
  "store-value",
  "state-update",
  "webhook-path",
  "webhook-host",
  "webhook-own",
  "webhook-cron",
  "push-id",
  "push-path",
  "push-token",
  "push-credentials",
  "header",
  "user",
] as const;
type Words = Record<(typeof PLACES)[number], string>;

const someWords = (): Words =>
  Object.fromEntries(PLACES.map((place) => [place, `canary${randomBytes(12).toString("hex")}`])) as Words;

/** Writes each word through the API. Returns everything that the API shows afterwards. */
const sayAll = async (url: string, words: Words): Promise<string> => {
  const client = new Client({
    apiUrl: url,
    defaultHeaders: { "x-canary": words.header, "x-user": words.user },
  });
  const assistant = await client.assistants.create({
    graphId: "whispers",
    config: { configurable: { secret: words["assistant-config"] } },
    metadata: { secret: words["assistant-metadata"] },
  });
  const other = await client.assistants.create({
    graphId: "whispers",
    context: { secret: words["assistant-context"] },
  });
  await client.assistants.update(assistant.assistant_id, { name: "another version" });
  const thread = await client.threads.create({ metadata: { secret: words["thread-metadata"], open: "yes" } });
  const { thread_id: threadId } = thread;
  await client.threads.update(threadId, { metadata: { deep: { secret: [words["nested-metadata"]] } } });
  const events: unknown[] = [];
  const start = client.runs.stream(threadId, assistant.assistant_id, {
    input: { words, large: words.input },
    config: { configurable: { user_secret: words.configurable } },
    metadata: { secret: words["run-metadata"] },
    webhook: `https://${words["webhook-host"]}.invalid/hook/${words["webhook-path"]}`,
    streamMode: ["values", "updates", "messages", "custom", "tasks", "checkpoints"],
    streamResumable: true,
    durability: "sync",
  });
  for await (const event of start) events.push(event);
  const waiting = await client.threads.get(threadId);
  await client.runs
    .wait(threadId, assistant.assistant_id, { command: { resume: words.resume } })
    .catch((error: unknown) => error);
  await client.threads.updateState(threadId, {
    values: { large: words["state-update"] },
    asNode: "say",
  });
  await client.runs.wait(threadId, other.assistant_id, {
    input: null,
    context: { secret: words.context },
    interruptBefore: ["ask"],
  });
  await client.store.putItem(["whispers"], "item", { said: words["store-value"] });
  await client.runs.wait(null, "whispers", {
    input: { words },
    interruptBefore: ["say"],
    webhook: `/${words["webhook-own"]}`,
  });
  const cron = await client.crons.create(assistant.assistant_id, {
    schedule: "0 0 1 1 *",
    input: { words: { message: words["cron-input"] } },
    metadata: { secret: words["cron-metadata"] },
    webhook: `https://example.com/${words["webhook-cron"]}`,
  });
  const deliveries = await eventually("the webhooks were tried, and have failed", async () => {
    const answer = await fetch(`${url}/webhooks/deliveries/search`, {
      method: "POST",
      body: "{}",
      headers: { ...JSON_BODY, "x-user": words.user },
    });
    const found = (await answer.json()) as { failures: number }[];
    return found.length >= 2 && found.every(({ failures }) => failures > 0) ? found : undefined;
  });
  const asks = async (method: string, params: object) => {
    const headers = { ...JSON_BODY, "a2a-version": "1.0", "x-user": words.user };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const answer = await fetch(`${url}/a2a/whispers`, { method: "POST", headers, body });
    return (await answer.json()) as { result: { task: { id: string } } };
  };
  const message = { messageId: "m", role: "ROLE_USER", parts: [{ data: { words: {} } }] };
  const { result } = await asks("SendMessage", { message });
  await asks("CreateTaskPushNotificationConfig", {
    ...{ taskId: result.task.id, id: words["push-id"], token: words["push-token"] },
    url: `https://receiver.invalid/${words["push-path"]}`,
    authentication: { scheme: "Bearer", credentials: words["push-credentials"] },
  });
  const pushes = await asks("ListTaskPushNotificationConfigs", { taskId: result.task.id });
  const copy = await client.threads.copy(threadId);
  const runs = await client.runs.list(threadId);
  return JSON.stringify([
    events,
    waiting,
    await client.threads.get(threadId),
    await client.threads.getState(threadId),
    await client.threads.getHistory(threadId),
    await client.threads.getHistory((copy as unknown as { thread_id: string }).thread_id),
    await client.threads.search({ metadata: { open: "yes" } }),
    await client.threads.search({ values: { large: words["state-update"] } }),
    await Promise.all(runs.map((run) => client.runs.get(threadId, run.run_id))),
    await client.assistants.get(assistant.assistant_id),
    await client.assistants.get(other.assistant_id),
    await client.assistants.getVersions(assistant.assistant_id),
    await client.store.getItem(["whispers"], "item"),
    await client.store.searchItems(["whispers"]),
    await client.crons.search({}),
    cron,
    deliveries,
    pushes,
    await Promise.all(
      runs.map(async (run) => {
        const address = `${url}/threads/${threadId}/runs/${run.run_id}/trace`;
        return await (await fetch(address, { headers: { "x-user": words.user } })).text();
      }),
    ),
  ]);
};

const JSON_BODY = { "content-type": "application/json" };

/** The forms in which a thief might find a word: plain, and in common byte encodings. */
const formsOf = (word: string): Buffer[] => {
  const bytes = Buffer.from(word);
  const shifted = (count: number) =>
    Buffer.from(
      Buffer.concat([Buffer.alloc(count), bytes])
        .toString("base64")
        .slice(count === 0 ? 0 : 4, -4),
    );
  return [
    bytes,
    Buffer.from(bytes.toString("hex")),
    Buffer.from(word, "utf16le"),
    shifted(0),
    shifted(1),
    shifted(2),
  ];
};

const filesBelow = async (folder: string): Promise<string[]> =>
  (await readdir(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

/** The database files that contain each word. */
const findAll = async (folder: string, words: Words): Promise<Partial<Record<string, string[]>>> => {
  const forms = PLACES.map((place) => [place, formsOf(words[place])] as const);
  const found: Partial<Record<string, string[]>> = {};
  for (const file of await filesBelow(folder)) {
    const bytes = await readFile(file);
    for (const [place, ofWord] of forms) {
      if (ofWord.some((form) => bytes.includes(form))) (found[place] ??= []).push(file.slice(folder.length));
    }
  }
  return found;
};

const closers: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const aDatabaseThatHeard = async (
  words: Words,
  encryption: { encryptionKeys: string[]; encryptedMetadataKeys: string[] },
): Promise<{ folder: string; shown: string; lines: string[] }> => {
  const parent = await temporaryFolder();
  closers.push(parent.remove);
  const { logger } = listeningLogger();
  const postgres = await startEmbeddedPostgres({ dataFolder: parent.dataFolder, logger });
  try {
    const options = { connectionString: postgres.connectionString, graphConfigFile: PROJECT, ...encryption };
    const first = await startTestServer(options);
    await first.close();
    // Compressed text is readable, but a search of files does not find it.
    await query(
      postgres,
      `do $$ declare c record; begin
        for c in select table_name, column_name from information_schema.columns
          where table_schema = 'threadloom' and data_type in ('text', 'json', 'jsonb') loop
          execute format('alter table threadloom.%I alter column %I set storage external', c.table_name, c.column_name);
        end loop; end $$`,
    );
    // Graphs in a process of their own, which stores its data itself.
    const server = await startTestServer({ ...options, graphProcesses: 1 });
    const shown = await sayAll(server.url, words).finally(() => server.close());
    await query(postgres, "analyze");
    await query(postgres, "checkpoint");
    return { folder: postgres.dataFolder, shown, lines: server.lines };
  } finally {
    await postgres.close();
  }
};

describe("the raw files of a database, including its write-ahead log,", () => {
  test("contain every word that a user wrote, without a key", async () => {
    const words = someWords();
    const { folder, shown } = await aDatabaseThatHeard(words, {
      encryptionKeys: [],
      encryptedMetadataKeys: [],
    });
    expect(PLACES.filter((place) => !shown.includes(words[place]))).toEqual([]);
    const found = await findAll(folder, words);
    expect(PLACES.filter((place) => found[place] === undefined)).toEqual([]);
  });

  test("contain none of them with a key, although the API shows all", async () => {
    const words = someWords();
    const keys = { encryptionKeys: TEST_KEYS, encryptedMetadataKeys: ["secret"] };
    const { folder, shown, lines } = await aDatabaseThatHeard(words, keys);
    expect(PLACES.filter((place) => !shown.includes(words[place]))).toEqual([]);
    expect(await findAll(folder, words)).toEqual({});
    for (const key of TEST_KEYS) expect(lines.join("")).not.toContain(key);
  });
});
