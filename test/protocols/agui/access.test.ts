import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { HttpAgent } from "@ag-ui/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestServer, type TestServer } from "../../helpers/app.ts";

/** Each user owns the records that the user creates. */

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    graphConfigFile: fileURLToPath(new URL("../../access/users/langgraph.json", import.meta.url)),
  });
});
afterAll(() => server.close());

const send = async (user: "alice" | "bob", path: string, body: unknown) => {
  const answer = await fetch(`${server.url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${user}-token`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: answer.status, text: await answer.text() };
};

const saying = (text: string, threadId = randomUUID()) => ({
  threadId,
  runId: randomUUID(),
  messages: [{ id: randomUUID(), role: "user", content: text }],
});

test("a user talks to own assistants, and gets a 404 for those of others, as for missing ones", async () => {
  const made = await send("alice", "/assistants", { graph_id: "approval" });
  const { assistant_id: mine } = JSON.parse(made.text) as { assistant_id: string };
  const own = await send("alice", `/agui/${mine}`, saying("a chair"));
  expect([own.status, own.text]).toEqual([200, expect.stringContaining('"RUN_FINISHED"')]);
  const other = await send("bob", `/agui/${mine}`, saying("a chair"));
  expect([other.status, other.text]).toEqual([404, `{"detail":"Assistant '${mine}' not found."}`]);
});

test("a user learns nothing of another's thread, and can't write to it", async () => {
  const conversation = saying("a secret chair");
  expect((await send("alice", "/agui/approval", conversation)).status).toBe(200);
  const { threadId } = conversation;
  // A reload shows a thread without state, like one that does not exist.
  const shown = await send("bob", "/agui/approval", { threadId, runId: "1", messages: [] });
  const missing = await send("bob", "/agui/approval", { threadId: randomUUID(), runId: "1", messages: [] });
  const typesIn = (text: string) => [...text.matchAll(/"type":"([A-Z_]+)"/g)].map(([, type]) => type);
  expect(typesIn(shown.text)).toEqual(typesIn(missing.text));
  expect(shown.text).not.toContain("chair");
  const written = await send("bob", "/agui/approval", saying("mine", threadId));
  expect(written.status).toBe(409);
  expect(written.text).not.toContain("chair");
  expect((await send("bob", "/agui/approval/cancel", { threadId, runId: conversation.runId })).status).toBe(
    404,
  );
});

test("a request without a user is refused before its body is read", async () => {
  const agent = new HttpAgent({ url: `${server.url}/agui/approval` });
  await expect(agent.runAgent()).rejects.toThrow(/401/);
});

test("the graph gets the user of the request", async () => {
  const { text } = await send("alice", "/agui/who", { threadId: randomUUID(), runId: "1", messages: [] });
  expect(text).toContain('"identity":"alice"');
});
