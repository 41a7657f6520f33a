import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startTestServer } from "threadloom/testing";

let server;
before(async () => {
  server = await startTestServer();
});
after(() => server.close());

const post = async (path, body) => {
  const response = await fetch(`${server.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  assert.equal(response.status, 200);
  return await response.json();
};

/** Asks for an e-mail; the answers that follow are given to what the graph asks. */
const conversation = async () => {
  const { thread_id: thread } = await post("/threads", {});
  const run = (body) => post(`/threads/${thread}/runs/wait`, { assistant_id: "approval", ...body });
  const messages = [{ role: "user", content: "Tell ada@example.com that her parcel is on its way" }];
  const asked = await run({ input: { messages } });
  return { asked, answer: (response) => run({ command: { resume: [response] } }) };
};

const questionOf = (values) => values.__interrupt__?.[0]?.value[0]?.action_request;

test("an e-mail is shown before it is sent, and sent when it is accepted", async () => {
  const { asked, answer } = await conversation();
  const question = questionOf(asked);
  assert.deepEqual([question?.action, question?.args["to"]], ["send_email", "ada@example.com"]);
  const { messages } = await answer({ type: "accept", args: null });
  assert.match(messages.at(-1)?.content ?? "", /^Sent to ada@example\.com: /);
});

test("an edited e-mail is sent as it was edited", async () => {
  const { answer } = await conversation();
  const args = { to: "bob@example.com", subject: "Hello", body: "Written by hand." };
  const { messages } = await answer({ type: "edit", args: { action: "send_email", args } });
  assert.equal(messages.at(-1)?.content, "Sent to bob@example.com: Written by hand.");
});

test("a remark leads to another e-mail, and what is ignored is not sent", async () => {
  const { answer } = await conversation();
  const again = await answer({ type: "response", args: "be brief" });
  assert.match(String(questionOf(again)?.args["body"]), /be brief/);
  const { messages } = await answer({ type: "ignore", args: null });
  assert.equal(messages.at(-1)?.content, "The e-mail was not sent.");
});
