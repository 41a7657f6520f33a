import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestServer, type TestServer } from "../helpers/app.ts";

/** The headers that the HTTP application adds to every answer, on streams. */

const KEY = "the-key";
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ apiKeys: [KEY] });
});
afterAll(async () => {
  await server.close();
});

const headers = {
  "x-api-key": KEY,
  origin: "https://smith.langchain.com",
  "content-type": "application/json",
};

test("browsers may read a stream, and the headers that name its run", async () => {
  const answer = await fetch(`${server.url}/runs/stream`, {
    method: "POST",
    headers,
    body: JSON.stringify({ assistant_id: "two-step", input: {} }),
  });
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toContain("text/event-stream");
  expect(answer.headers.get("access-control-allow-origin")).toBe("*");
  expect(answer.headers.get("access-control-expose-headers")).toContain("Content-Location");
  expect(answer.headers.get("content-location")).toMatch(/\/runs\/[0-9a-f-]{36}$/);
  expect(answer.headers.get("x-request-id")).toBeTruthy();
  expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
  expect(await answer.text()).toContain("event: metadata\n");
});

test("a refused stream has the server's format, and browsers may read the refusal", async () => {
  const answer = await fetch(`${server.url}/runs/stream`, {
    method: "POST",
    headers,
    body: JSON.stringify({ assistant_id: "nobody", input: {} }),
  });
  expect(answer.status).toBe(404);
  expect(answer.headers.get("access-control-allow-origin")).toBe("*");
  expect(await answer.json()).toEqual({ detail: "Assistant 'nobody' not found." });
});

test("HEAD of a stream ends at once", async () => {
  const { body: thread } = await server.client.post("/threads").set(headers).send({});
  const { body: run } = await server.client
    .post(`/threads/${thread.thread_id}/runs`)
    .set(headers)
    .send({ assistant_id: "two-step", input: {}, stream_resumable: true });
  const answer = await fetch(`${server.url}/threads/${thread.thread_id}/runs/${run.run_id}/stream`, {
    method: "HEAD",
    headers,
    signal: AbortSignal.timeout(10_000),
  });
  expect(answer.status).toBeLessThan(500);
  expect(await answer.text()).toBe("");
});
