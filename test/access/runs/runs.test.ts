import { fileURLToPath } from "node:url";
import { Client } from "@langchain/langgraph-sdk";
import { afterEach, expect, test } from "vitest";
import { startTestServer, type TestServer, type TestServerOptions } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { TEST_KEYS } from "../../helpers/encryption.ts";
import { query } from "../../helpers/query.ts";
import { madeFor } from "./made.ts";

/** Runs of a user, wherever they are executed, and graphs that a factory makes for a reader. */

const CONFIG = fileURLToPath(new URL("langgraph.json", import.meta.url));
let server: TestServer;
afterEach(async () => {
  await server.close();
});
const start = async (options: TestServerOptions = {}): Promise<void> => {
  server = await startTestServer({ graphConfigFile: CONFIG, ...options });
};
const clientOf = (name: string): Client =>
  new Client({ apiUrl: server.url, apiKey: null, defaultHeaders: { authorization: `Bearer ${name}-token` } });

test("graph processes and second attempts know the user, whose record is encrypted if the server has a key", async () => {
  await start({ graphProcesses: 1, encryptionKeys: TEST_KEYS });
  const alice = clientOf("alice");
  const { thread_id } = await alice.threads.create();
  const values = (await alice.runs.wait(thread_id, "who", { input: {} })) as { seen: object };
  expect(values.seen).toMatchObject({ id: "alice", user: { identity: "alice", team: "blue" } });
  const rows = await query<{ user: string }>(server, "select auth_user::text as user from threadloom.runs");
  expect(rows[0]?.user).toMatch(/^"?enc1:/);
  expect(JSON.stringify(rows)).not.toContain("canary.example");

  const { thread_id: other } = await alice.threads.create();
  expect(await alice.runs.wait(other, "twice", { input: {} })).toEqual({ attempt: 2, user: "alice" });
});

test("a cron fires as the user who created it, on a thread of that user", async () => {
  await start();
  const [alice, bob] = [clientOf("alice"), clientOf("bob")];
  await alice.crons.create("who", { schedule: "0 9 * * *", input: {}, onRunCompleted: "keep" } as never);
  await query(server, "update threadloom.crons set next_run_date = now() - interval '1 second'");
  const thread = await eventually("the cron's run to end", async () => {
    const [found] = await alice.threads.search({ status: "idle" });
    return found?.values && "seen" in found.values ? found : undefined;
  });
  expect(thread.metadata).toMatchObject({ owner: "alice" });
  expect(thread.values).toMatchObject({ seen: { id: "alice", user: { identity: "alice" } } });
  expect(await bob.threads.search()).toEqual([]);
});

test("a factory that is called to read a state receives the reader", async () => {
  await start();
  const alice = clientOf("alice");
  const { thread_id } = await alice.threads.create();
  await alice.runs.wait(thread_id, "made", { input: {} });
  madeFor.length = 0;
  await alice.threads.getState(thread_id);
  await alice.threads.updateState(thread_id, { values: { n: 7 }, asNode: "count" });
  expect(madeFor.length).toBeGreaterThan(0);
  expect(new Set(madeFor)).toEqual(new Set(["alice"]));
});

test("a filter by an encrypted key of metadata is a server error, and the log explains it", async () => {
  await start({ encryptionKeys: TEST_KEYS, encryptedMetadataKeys: ["owner"] });
  const answer = await fetch(`${server.url}/threads/search`, {
    method: "POST",
    headers: { authorization: "Bearer alice-token", "content-type": "application/json" },
    body: "{}",
  });
  expect(answer.status).toBe(500);
  expect(await answer.text()).not.toContain("owner");
  expect(server.lines.some((line) => line.includes("whose values LANGGRAPH_AES_JSON_KEYS encrypts"))).toBe(
    true,
  );
});
