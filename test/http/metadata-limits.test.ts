import { afterAll, beforeAll, expect, test } from "vitest";
import { apiOf, type Answer, type Api, type Refusal } from "../helpers/api.ts";
import { storableObject } from "../../src/platform/domain/json-schemas.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";

/** Each member of metadata is an index entry, so one request has a maximum of them. */

let server: TestServer;
let api: Api;
let threadId: string;
let assistantId: string;
let cronId: string;
const RUN = { assistant_id: "agent", input: {}, after_seconds: 3_600 };
const CRON = { assistant_id: "agent", schedule: "0 0 1 1 *", input: {} };
beforeAll(async () => {
  server = await startTestServer({ role: "api" });
  api = apiOf(server);
  threadId = await api.aThread();
  assistantId = (await api.post<{ assistant_id: string }>("/assistants", { graph_id: "agent" })).body
    .assistant_id;
  cronId = (await api.post<{ cron_id: string }>("/runs/crons", CRON)).body.cron_id;
});
afterAll(() => server.close());

const members = (count: number, prefix: string): Record<string, number> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`${prefix}${index}`, index]));

test.each<[string, (metadata: object) => Promise<Answer<Refusal>>]>([
  ["POST /threads", (metadata) => api.post("/threads", { metadata })],
  ["PATCH /threads/{id}", (metadata) => api.patch(`/threads/${threadId}`, { metadata })],
  ["POST /assistants", (metadata) => api.post("/assistants", { graph_id: "agent", metadata })],
  ["PATCH /assistants/{id}", (metadata) => api.patch(`/assistants/${assistantId}`, { metadata })],
  ["POST /runs", (metadata) => api.post("/runs", { ...RUN, metadata })],
  ["POST /threads/{id}/runs", (metadata) => api.post(`/threads/${threadId}/runs`, { ...RUN, metadata })],
  ["POST /runs/batch", (metadata) => api.post("/runs/batch", [{ ...RUN, metadata }])],
  ["POST /runs/crons", (metadata) => api.post("/runs/crons", { ...CRON, metadata })],
  ["PATCH /runs/crons/{id}", (metadata) => api.patch(`/runs/crons/${cronId}`, { metadata })],
])("%s accepts metadata of at most 2,000 elements", async (_, send) => {
  for (const many of [members(2_001, "k"), { list: [...Array(2_000).keys()] }, { in: members(2_000, "k") }]) {
    const { status, body } = await send(many);
    expect([status, body.detail]).toEqual([
      422,
      expect.stringMatching(
        /metadata': holds more than 2000 elements \(items of lists and members of objects\)\.$/,
      ),
    ]);
  }
  expect((await send(members(2_000, "k"))).status).toBeLessThan(300);
});

test("the characters of a value are counted without escapes, and elements up to the limit", () => {
  expect(storableObject.safeParse({ text: "\n".repeat(999_996) }).success).toBe(true);
  expect(storableObject.safeParse({ text: "\n".repeat(999_997) }).success).toBe(false);
  const late = Object.defineProperty({}, "late", { enumerable: true, get: () => expect.fail("was read") });
  expect(storableObject.safeParse({ list: [...Array(20_001).keys(), late] }).success).toBe(false);
});
