import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isAtGate, openGate } from "../../fixtures/gates.ts";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { AGUI_GRAPHS, aFront, DIALECTS, type Dialect, type Event, type Front } from "./clients.ts";

/* Of two tools that are called at once, one has ended, and the other asks. */

let server: TestServer;
/** Executes nothing. */
let replica: TestServer;
let api: Api;
beforeAll(async () => {
  server = await startTestServer({ graphConfigFile: AGUI_GRAPHS });
  const { connectionString } = server;
  replica = await startTestServer({ graphConfigFile: AGUI_GRAPHS, connectionString, role: "api" });
  api = apiOf(server);
});
afterAll(async () => {
  await replica.close();
  await server.close();
});

const resultsOf = ({ messages }: Front): unknown[] =>
  messages.filter(({ role }) => role === "tool").map(({ content }) => content);
const idsOf = ({ messages }: Front): string[] => messages.map(({ id }) => id);

/** Answers the question in the dialect of the page. */
const answering = (asked: readonly Event[], answer: string): object => {
  const { interrupts } = (asked.at(-1)?.["outcome"] ?? {}) as { interrupts?: { id: string }[] };
  return interrupts === undefined
    ? { forwardedProps: { command: { resume: answer } } }
    : { resume: interrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload: answer })) };
};

const ask = async (dialect: Dialect, question: string, runId: string = randomUUID()) => {
  const page = aFront(server.url, "two-tools", { dialect });
  const asked = await page.run({ say: question, runId });
  expect(resultsOf(page)).toEqual(["seen"]);
  return { page, asked, runId };
};

describe.each(DIALECTS)("a result that came before the question, on a page of %s", (dialect) => {
  test("stays while the question is answered, and comes before what the agent says then", async () => {
    const { page, asked } = await ask(dialect, "x");
    const seen: unknown[] = [];
    const onEvent = () => seen.push({ results: resultsOf(page).includes("seen"), used: page.state["used"] });
    const events = await page.run({ ...answering(asked, "this"), onEvent });
    expect(seen).not.toContainEqual(expect.objectContaining({ results: false }));
    expect(seen).not.toContainEqual(expect.objectContaining({ used: [] }));
    expect(page.state).toEqual({ used: ["ask", "look"] });
    // In the order in which they arrived.
    expect(page.messages.map(({ content }) => content)).toEqual([
      "x",
      "",
      "seen",
      "this",
      "used ask and look",
    ]);
    const { values } = await api.state(page.threadId);
    expect(idsOf(page).sort()).toEqual(values.messages?.map(({ id }) => id).sort());
    const steps = events.filter(({ type }) => type.startsWith("STEP_"));
    expect(steps.map(({ type, stepName }) => [type, stepName])).toEqual([
      ["STEP_STARTED", "ask"],
      ["STEP_FINISHED", "ask"],
      ["STEP_STARTED", "reply"],
      ["STEP_FINISHED", "reply"],
    ]);
  });

  test("is on a page that joins the answered run at another server", async () => {
    const label = `gate ${randomUUID()}`;
    const { page, asked } = await ask(dialect, label);
    const answered = page.run(answering(asked, "that"));
    await eventually("the answer waits", () => isAtGate(label));
    const joined = aFront(replica.url, "two-tools", { dialect, threadId: page.threadId });
    let results: unknown[] | undefined;
    await joined.run({
      onEvent: ({ type, stepName }) => {
        if (type !== "STEP_STARTED" || stepName !== "ask") return;
        results = resultsOf(joined);
        openGate(label);
      },
    });
    await answered;
    expect(results).toEqual(["seen"]);
    expect(joined.messages).toEqual(page.messages);
  });

  test("is on a page that repeats its request after the question", async () => {
    const { page, runId } = await ask(dialect, "x");
    const repeating = aFront(replica.url, "two-tools", { dialect, threadId: page.threadId });
    await repeating.run({ messages: page.messages.slice(0, 1), runId });
    expect(repeating.messages).toEqual(page.messages);
    expect(repeating.state).toEqual(page.state);
  });
});

test("the API returns it to those who join the run after the question, as to those who waited", async () => {
  const threadId = randomUUID();
  const body = {
    assistant_id: "two-tools",
    input: { messages: [{ role: "user", content: "x" }] },
    if_not_exists: "create",
  };
  const { body: waited } = await server.client.post(`/threads/${threadId}/runs/wait`).send(body);
  const [run] = await api.runs(threadId);
  const joined = await apiOf(replica).join(threadId, run?.run_id ?? "");
  // LangGraph gives a message that has no id a new one each time.
  const textsOf = ({ messages }: { messages?: { content: unknown }[] }) =>
    messages?.map(({ content }) => content);
  expect(textsOf(joined as never)).toEqual(["x", "", "seen"]);
  expect(textsOf(waited as never)).toEqual(textsOf(joined as never));
  expect(joined).toMatchObject({ used: ["look"] });
});
