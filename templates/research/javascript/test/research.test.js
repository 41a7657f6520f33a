import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startTestServer } from "threadloom/testing";

let server;
before(async () => {
  server = await startTestServer();
});
after(() => server.close());

test("a topic becomes questions, each is looked into, and the report has them all", async () => {
  const response = await fetch(`${server.url}/runs/wait`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      assistant_id: "research",
      input: { messages: [{ role: "user", content: "tea" }] },
    }),
  });
  const { messages, questions, findings } = await response.json();
  assert.ok(questions.length > 1);
  assert.deepEqual(findings.map(({ question }) => question).sort(), [...questions].sort());
  for (const question of questions) assert.ok(messages.at(-1)?.content.includes(question));
});
