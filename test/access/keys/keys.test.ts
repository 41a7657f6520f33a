import { Client } from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hashOf, idOf, makeKey } from "../../../src/access/keys/key-text.ts";
import { createKeyRepository, type KeyRepository } from "../../../src/access/keys/repository.ts";
import type { KeyScope } from "../../../src/access/caller.ts";
import type { Database } from "../../../src/platform/database/database.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

let server: TestServer;
let replica: TestServer;
let database: Database;
let repository: KeyRepository;
beforeAll(async () => {
  server = await startTestServer({ corsAllowOrigins: [] });
  replica = await startTestServer({ connectionString: server.connectionString });
  database = openTestDatabase(server.connectionString);
  repository = createKeyRepository(database);
});
afterAll(async () => {
  await database.close();
  await replica.close();
  await server.close();
});

/** Secrets that must not appear in any log line. */
const made: string[] = [];
const create = async (name: string, scopes: KeyScope[], expiresInSeconds?: number): Promise<string> => {
  const key = makeKey();
  made.push(key);
  const hash = hashOf(key);
  await repository.insert({ keyId: idOf(hash), keyHash: hash, name, scopes, expiresInSeconds });
  return key;
};
const ask = async (at: TestServer, key: string | undefined, path = "/openapi.json"): Promise<number> => {
  const answer = await fetch(`${at.url}${path}`, key === undefined ? {} : { headers: { "x-api-key": key } });
  await answer.arrayBuffer();
  return answer.status;
};
const becomes = async (status: number, ...asked: Parameters<typeof ask>): Promise<void> => {
  await eventually(`the answer ${status}`, async () => (await ask(...asked)) === status);
};

describe("a server whose first key is created while it runs", () => {
  test("needs no key before that, and accepts pages of this machine only", async () => {
    expect(await ask(server, undefined)).toBe(200);
    const page = await fetch(`${server.url}/openapi.json`, { headers: { origin: "https://app.example" } });
    expect(page.status).toBe(403);
  });

  test("then asks for a key on every server, and pages of other origins may send one", async () => {
    const key = await create("first", ["admin"]);
    await becomes(401, server, undefined);
    await becomes(401, replica, undefined);
    expect([await ask(server, key), await ask(replica, key), await ask(server, "wrong")]).toEqual([
      200, 200, 403,
    ]);
    const page = await fetch(`${server.url}/openapi.json`, {
      headers: { origin: "https://app.example", "x-api-key": key },
    });
    expect([page.status, page.headers.get("access-control-allow-origin")]).toEqual([200, "*"]);
    const asked = await fetch(`${server.url}/info`, { headers: { origin: "https://app.example" } });
    expect([asked.status, asked.headers.get("access-control-allow-origin")]).toEqual([200, "*"]);
  });

  test("still asks for a key after the last one is revoked or has expired", async () => {
    const brief = await create("brief", ["read"], 0.001);
    const [first] = await repository.list({ withRevoked: false });
    await repository.revoke(first!.key_id);
    await becomes(403, server, made[0]);
    await becomes(403, replica, made[0]);
    await becomes(403, server, brief);
    expect([await ask(server, undefined), await ask(replica, undefined)]).toEqual([401, 401]);
  });
});

describe("scopes", () => {
  const statuses = async (key: string): Promise<Record<string, number>> => {
    const client = new Client({ apiUrl: server.url, apiKey: key, callerOptions: { maxRetries: 0 } });
    const attempt = async (work: () => Promise<unknown>): Promise<number> =>
      await work().then(
        () => 200,
        (error: { status?: number }) => error.status ?? 0,
      );
    const admin = new Client({ apiUrl: server.url, apiKey: made[2]! });
    const { thread_id } = await admin.threads.create();
    return {
      search: await attempt(() => client.threads.search()),
      state: await attempt(() => client.threads.getState(thread_id)),
      run: await attempt(() => client.runs.wait(thread_id, "agent", { input: { messages: [] } })),
      put: await attempt(() => client.store.putItem(["memories"], "k", { text: "x" })),
      assistant: await attempt(() => client.assistants.create({ graphId: "agent" })),
      cron: await attempt(() => client.crons.create("agent", { schedule: "0 9 * * *" })),
      expire: await attempt(() => client.threads.update(thread_id, { metadata: {}, ttl: 60 })),
      delete: await attempt(() => client.threads.delete(thread_id)),
    };
  };

  test("limit which requests a key may make", async () => {
    const keys = {
      admin: await create("admin", ["admin"]),
      run: await create("run", ["run"]),
      read: await create("read", ["read"]),
    };
    for (const key of Object.values(keys)) await becomes(200, server, key);
    const none = {
      search: 403,
      state: 403,
      run: 403,
      put: 403,
      assistant: 403,
      cron: 403,
      expire: 403,
      delete: 403,
    };
    expect(await statuses(keys.read)).toEqual({ ...none, search: 200, state: 200 });
    expect(await statuses(keys.run)).toEqual({
      ...none,
      search: 200,
      state: 200,
      run: 200,
      put: 200,
    });
    expect(Object.values(await statuses(keys.admin))).toEqual([200, 200, 200, 200, 200, 200, 200, 200]);
  });

  test("refuse with one sentence that names the missing scope", async () => {
    const answer = await fetch(`${server.url}/threads`, {
      method: "POST",
      headers: { "x-api-key": made.at(-1)!, "content-type": "application/json" },
      body: "{}",
    });
    expect([answer.status, await answer.json()]).toEqual([
      403,
      { detail: "This API key may not do that: 'threads:create' needs the scope 'run'." },
    ]);
  });
});

describe("the table of keys", () => {
  test("contains only a hash, never a key", async () => {
    const rows = await database.query("select to_jsonb(key)::text as text from threadloom.api_keys key");
    const text = JSON.stringify(rows);
    for (const key of made) expect(text).not.toContain(key.slice(3));
  });

  test("accepts a name only once, until its key is revoked", async () => {
    await expect(create("admin", ["read"])).rejects.toMatchObject({ code: "23505" });
    const found = await repository.find("admin");
    await repository.revoke(found!.key_id);
    await create("admin", ["admin"]);
    expect((await repository.find("admin"))?.key_id).not.toBe(found?.key_id);
  });

  test("lets a key be revoked only once", async () => {
    const found = await repository.find("read");
    expect(await repository.revoke(found!.key_id)).toMatchObject({ status: "revoked" });
    expect(await repository.revoke(found!.key_id)).toBeUndefined();
  });

  test("can be emptied only after every key is revoked", async () => {
    expect(await repository.forgetRevoked()).toBeUndefined();
    for (const { key_id } of await repository.list({ withRevoked: false })) await repository.revoke(key_id);
    expect(await repository.forgetRevoked()).toBeGreaterThan(4);
    await becomes(200, server, undefined);
  });

  test("no key appears in a log line, an error or the output of the command that lists keys", () => {
    const logged = [...server.lines, ...replica.lines].join("");
    for (const key of made) expect(logged).not.toContain(key.slice(3, 40));
  });
});
