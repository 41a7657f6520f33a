import { afterAll, beforeAll, expect, test } from "vitest";
import { startAssistants } from "../helpers/parts.ts";

const KEYS = ["canary-4b1f-first-key", "canary-9c2e-second-key"];
const WRONG = "canary-7d3a-wrong-key";

let server: Awaited<ReturnType<typeof startAssistants>>;
beforeAll(async () => {
  server = await startAssistants({
    apiKeys: KEYS,
    routes: [
      async (app) => {
        app.get("/boom", async (request) => {
          throw Object.assign(new Error("boom"), { request, headers: request.headers });
        });
      },
    ],
  });
});
afterAll(async () => {
  await server.close();
});

test.each(["/ok", "/ok/", "/ok?check_db=1"])("%s needs no key: health probes send none", async (path) => {
  const answer = await fetch(`${server.url}${path}`);
  expect(answer.status).toBe(200);
  expect(await answer.json()).toEqual({ ok: true });
});

test.each([
  ["x-api-key", KEYS[0]!],
  ["x-api-key", KEYS[1]!],
  ["X-Api-Key", KEYS[0]!],
  ["authorization", `Bearer ${KEYS[0]}`],
  ["authorization", `bearer ${KEYS[1]}`],
])("the server accepts each configured key, sent as %s: %s", async (name, value) => {
  const answer = await fetch(`${server.url}/openapi.json`, { headers: { [name]: value } });
  expect(answer.status).toBe(200);
});

test.each([
  KEYS[0]!.slice(0, -1),
  `${KEYS[0]}x`,
  KEYS[0]!.toUpperCase(),
  `${KEYS[0]}, ${KEYS[1]}`,
  "undefined",
  "null",
])("a text that only resembles a key is refused: %s", async (key) => {
  const answer = await fetch(`${server.url}/openapi.json`, { headers: { "x-api-key": key } });
  expect(answer.status).toBe(403);
});

test("an empty text is not a key", async () => {
  const answer = await fetch(`${server.url}/openapi.json`, {
    headers: { "x-api-key": "", authorization: "Bearer " },
  });
  expect(answer.status).toBe(401);
});

test("an unauthorized request is refused before its body is read", async () => {
  const answer = await fetch(`${server.url}/assistants`, { method: "POST", body: "{ not json" });
  expect(answer.status).toBe(401);
});

test("no log line ever contains a key, not even after an error", async () => {
  for (const key of [...KEYS, WRONG]) {
    const headers = { "x-api-key": key, authorization: `Bearer ${key}` };
    for (const path of ["/boom", "/nope", "/assistants/nope", "/names/%", "/openapi.json"]) {
      await fetch(`${server.url}${path}`, { headers });
    }
    await fetch(`${server.url}/assistants`, { method: "POST", headers, body: "{" });
    await fetch(`${server.url}/assistants`, { method: "POST", headers, body: '{"graph_id":5}' });
  }
  expect(server.lines.some((line) => line.includes("boom"))).toBe(true);
  expect(server.lines.filter((line) => line.includes("canary"))).toEqual([]);
});
