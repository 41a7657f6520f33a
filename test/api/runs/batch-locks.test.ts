import { createHash } from "node:crypto";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { ownersOnly } from "../../helpers/access.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";

/** A batch locks the threads of its runs, but never threads hidden from its caller. */

const KEYS = { ann: "the-key-of-ann", bob: "the-key-of-bob" };
type Owner = keyof typeof KEYS;
const ownerOf = (owner: Owner) => createHash("sha256").update(KEYS[owner]).digest("hex").slice(0, 12);

let server: TestServer;
beforeAll(async () => {
  // No worker executes runs here, so they wait.
  server = await startTestServer({
    apiKeys: Object.values(KEYS),
    authorize: async (caller, resource, action, value) =>
      await ownersOnly(resource === "threads" ? caller : { kind: "server" }, resource, action, value),
    role: "api",
  });
});
afterAll(() => server.close());

let other: pg.Client;
beforeEach(async () => {
  other = new pg.Client({ connectionString: server.connectionString });
  await other.connect();
  await other.query("begin");
});
afterEach(async () => {
  await other.end();
});

const post = async (owner: Owner, path: string, body: object) => {
  const answer = await fetch(`${server.url}${path}`, {
    method: "POST",
    headers: { "x-api-key": KEYS[owner], "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: answer.status, text: await answer.text() };
};
const aThread = async (owner: Owner): Promise<string> => {
  const threadId = newId();
  const { status } = await post(owner, "/threads", {
    thread_id: threadId,
    metadata: { owner: ownerOf(owner) },
  });
  expect(status).toBe(200);
  return threadId;
};
const run = { assistant_id: "two-step", input: {} };

test.each([
  ["is named", {}, 404, "not found"],
  ["would be made", { if_not_exists: "create" }, 409, "already exists"],
])(
  "a hidden thread that %s is refused at once, whatever locks it and its runs",
  async (_how, fields, status, words) => {
    const [hers, his] = [await aThread("ann"), await aThread("bob")];
    expect((await post("ann", `/threads/${hers}/runs`, run)).status).toBe(200);
    await other.query("select from threadloom.threads where thread_id = $1 for no key update", [hers]);
    await other.query("select from threadloom.runs where thread_id = $1 for update", [hers]);
    const refused = await post("bob", "/runs/batch", [
      { ...run, thread_id: his },
      { ...run, thread_id: hers, multitask_strategy: "interrupt", ...fields },
    ]);
    expect([refused.status, JSON.parse(refused.text)]).toEqual([
      status,
      { detail: expect.stringContaining(`Thread '${hers}' ${words}`) },
    ]);
  },
);

test("a batch waits for the caller's own threads, and is stored whole", async () => {
  const his = [await aThread("bob"), await aThread("bob")];
  await other.query("select from threadloom.threads where thread_id = $1 for no key update", [his[0]]);
  const answer = post(
    "bob",
    "/runs/batch",
    his.map((thread_id) => ({ ...run, thread_id, multitask_strategy: "interrupt" })),
  );
  await expect
    .poll(async () => {
      const waiting = await other.query<{ count: number }>(
        "select count(*)::int as count from pg_locks where not granted",
      );
      return waiting.rows[0]?.count;
    })
    .toBeGreaterThan(0);
  await other.query("commit");
  const { status, text } = await answer;
  expect([status, (JSON.parse(text) as object[]).length]).toEqual([200, 2]);
});
