import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startTestServer, type TestServer } from "threadloom/testing";

let server: TestServer;
before(async () => {
  server = await startTestServer();
});
after(() => server.close());

test("the agent calculates with its tool", async () => {
  const response = await fetch(`${server.url}/runs/wait`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      assistant_id: "agent",
      input: { messages: [{ role: "user", content: "What is 6 * 7?" }] },
    }),
  });
  const { messages } = (await response.json()) as { messages: { type: string; content: string }[] };
  assert.deepEqual(
    messages.map(({ type }) => type),
    ["human", "ai", "tool", "ai"],
  );
  assert.match(messages.at(-1)?.content ?? "", /42/);
});
