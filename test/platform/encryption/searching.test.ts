import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apiOf, saying, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { TEST_KEYS } from "../../helpers/encryption.ts";

/**
 * Every search for a user's text, on a server that encrypts it: the search finds the text, or is refused in one sentence; it never misses a
 * record.
 */

let server: TestServer;
let api: Api;
let threadId: string;
let assistantId: string;
beforeAll(async () => {
  server = await startTestServer({ encryptionKeys: TEST_KEYS, encryptedMetadataKeys: ["secret"] });
  api = apiOf(server);
  const metadata = { open: "yes", secret: "no", deep: { secret: "no", open: "yes" } };
  const assistant = await api.post<{ assistant_id: string }>("/assistants", {
    graph_id: "counter",
    metadata,
  });
  assistantId = assistant.body.assistant_id;
  const thread = await api.post<{ thread_id: string }>("/threads", { metadata });
  threadId = thread.body.thread_id;
  await api.post(`/threads/${threadId}/runs/wait`, {
    assistant_id: assistantId,
    input: saying("hello"),
    metadata: { ...metadata, tone: "kind" },
    config: { configurable: { model: "small", nested: { open: "yes" } } },
  });
  await api.post("/runs/crons", {
    assistant_id: assistantId,
    schedule: "0 0 1 1 *",
    input: saying("hello"),
    metadata,
  });
  const item = { namespace: ["notes"], key: "one", value: { said: "hello" } };
  const stored = await server.client.put("/store/items").send(item);
  expect(stored.status).toBe(204);
});
afterAll(() => server.close());

const ofMetadata = (key: string) => `the values of '${key}' are encrypted, so nothing can be found by them.`;
const OF_ITEMS = "the values of items are encrypted, so nothing can be found by them.";

/** A filter with the message of its refusal; undefined: it finds the record. */
const OF_METADATA: readonly (readonly [filter: object, refusal: string | undefined])[] = [
  [{ open: "yes" }, undefined],
  [{ deep: { open: "yes" } }, undefined],
  [{ secret: "no" }, ofMetadata("secret")],
  [{ open: "yes", secret: "no" }, ofMetadata("secret")],
  [{ deep: { secret: "no" } }, ofMetadata("secret")],
  [{ deep: [{ secret: "no" }] }, ofMetadata("secret")],
];

const ROUTES = {
  "/threads/search": OF_METADATA,
  "/threads/count": OF_METADATA,
  "/assistants/search": OF_METADATA,
  "/assistants/count": OF_METADATA,
  "/assistants/:assistant_id/versions": OF_METADATA,
  "/runs/search": OF_METADATA,
  "/runs/crons/search": OF_METADATA,
  "/runs/crons/count": OF_METADATA,
  "/threads/:thread_id/history": [
    ...OF_METADATA,
    [{ tone: "kind" }, undefined],
    [{ source: "loop" }, undefined],
    [{ model: "small" }, ofMetadata("model")],
    [{ nested: { open: "yes" } }, ofMetadata("nested")],
  ],
} satisfies Record<string, typeof OF_METADATA>;

const CASES = Object.entries(ROUTES).flatMap(([route, filters]) =>
  filters.map(([metadata, refusal]) => ({ route, body: { metadata }, refusal })),
);

describe("a server with encryption", () => {
  test.each([
    ...CASES,
    { route: "/threads/search", body: { values: { messages: [{ content: "hello" }] } }, refusal: undefined },
    { route: "/threads/count", body: { values: { messages: [{ content: "hello" }] } }, refusal: undefined },
    { route: "/store/items/search", body: { namespace_prefix: ["notes"] }, refusal: undefined },
    {
      route: "/store/items/search",
      body: { namespace_prefix: ["notes"], filter: { said: "hello" } },
      refusal: OF_ITEMS,
    },
    {
      route: "/store/items/search",
      body: { namespace_prefix: ["notes"], filter: { said: { $ne: "x" } } },
      refusal: OF_ITEMS,
    },
  ])("finds by POST $route $body, or refuses", async ({ route, body, refusal }) => {
    const path = route.replace(":thread_id", threadId).replace(":assistant_id", assistantId);
    const answer = await api.post<unknown>(path, body);
    if (refusal !== undefined) {
      expect([answer.status, JSON.stringify(answer.body)]).toEqual([422, expect.stringContaining(refusal)]);
      return;
    }
    expect(answer.status).toBe(200);
    expect(answer.body).not.toEqual([]);
    expect(answer.body).not.toBe(0);
    expect(answer.body).not.toMatchObject({ items: [] });
  });
});
