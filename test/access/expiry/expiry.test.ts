import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { ttls } from "./auth.ts";

/** Giving a thread a time to live is a delayed deletion, so it needs the permission to delete. */

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    graphConfigFile: fileURLToPath(new URL("langgraph.json", import.meta.url)),
  });
});
beforeEach(() => {
  ttls.length = 0;
});
afterAll(() => server.close());

interface Answer {
  status: number;
  body: { thread_id: string; ttl?: { strategy: string; ttl_minutes: number } };
}
const ask = async (who: "ann" | "bob", method: string, path: string, body?: object): Promise<Answer> => {
  const answer = await fetch(`${server.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${who}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: (await answer.json()) as Answer["body"] };
};
const aThread = async (fields: object = {}): Promise<string> =>
  `/threads/${(await ask("ann", "POST", "/threads", fields)).body.thread_id}`;
const ttlOf = async (thread: string) => (await ask("ann", "GET", `${thread}?include=ttl`)).body.ttl;

test.each([
  ["removes it", { ttl: { strategy: "delete", ttl: 0.02 } }],
  ["removes it, in minutes alone", { ttl: 0.02 }],
  ["removes its history", { ttl: { strategy: "keep_latest", ttl: 0.02 } }],
])("a user who may not delete a thread cannot give it a time to live that %s", async (_, patch) => {
  const thread = await aThread({ metadata: { kept: "no" } });
  expect((await ask("bob", "PATCH", thread, { metadata: { a: 1 } })).status).toBe(200);
  expect((await ask("bob", "PATCH", thread, { ...patch, metadata: { b: 2 } })).status).toBe(403);
  expect(await ttlOf(thread)).toBeUndefined();
});

test("a user from whom the filter of deletions hides a thread gets the answer of a deletion", async () => {
  const thread = await aThread({ metadata: { kept: "yes" } });
  expect((await ask("ann", "PATCH", thread, { ttl: 5 })).status).toBe(404);
  expect((await ask("ann", "DELETE", thread)).status).toBe(404);
  expect(await ttlOf(thread)).toBeUndefined();
});

test("a user who may delete a thread can give it a time to live; the handler sees the value and may change it", async () => {
  const thread = await aThread({ metadata: { kept: "no" } });
  const { body } = await ask("ann", "PATCH", thread, { ttl: 5_000 });
  expect(body.ttl).toMatchObject({ strategy: "delete", ttl_minutes: 1_000 });
  expect(ttls).toEqual([undefined, { strategy: "delete", ttl: 5_000 }]);
});

test("a user creates a thread with a time to live, which the handler sees; an existing thread keeps its own", async () => {
  const ttl = { strategy: "delete", ttl: 60 };
  const made = await ask("bob", "POST", "/threads", { ttl });
  expect(made.status).toBe(200);
  expect(ttls).toEqual([ttl]);
  expect(await ttlOf(`/threads/${made.body.thread_id}`)).toMatchObject({ ttl_minutes: 60 });
  const thread = await aThread();
  const again = { thread_id: thread.slice("/threads/".length), if_exists: "do_nothing", ttl };
  expect((await ask("bob", "POST", "/threads", again)).status).toBe(200);
  expect(await ttlOf(thread)).toBeUndefined();
});
