import { fileURLToPath } from "node:url";
import { Command, MemorySaver } from "@langchain/langgraph";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { isAtGate, openGate } from "../../fixtures/gates.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { clientOf, data, eventsOf, saying, sent } from "../a2a/clients.ts";
import { aFront, DIALECTS, type Event, type Front } from "../agui/clients.ts";
import { ask, newClient, oldClient, WITH_FORMS, WITH_TASKS } from "../mcp/clients.ts";
import { build } from "./graphs/discreet.ts";

/* What leaves the server over MCP, A2A and AG-UI of a graph that keeps channels to itself. LangGraph is the oracle. */

const graphConfigFile = fileURLToPath(new URL("graphs/langgraph.json", import.meta.url));

let server: TestServer;
/** Executes nothing. */
let replica: TestServer;
beforeAll(async () => {
  server = await startTestServer({ graphConfigFile });
  const { connectionString } = server;
  replica = await startTestServer({ graphConfigFile, connectionString, role: "api" });
});
afterAll(async () => {
  await replica.close();
  await server.close();
});

const SECRET = /secret|token|thought/i;
const GRAPHS = ["discreet", "discreet-factory"];

/** What LangGraph's `invoke` returns for a question, and then for the answer to the graph's own question. */
const returned = async (question: string, resume?: string): Promise<Record<string, unknown>> => {
  const graph = build(new MemorySaver());
  const options = { configurable: { thread_id: newId() } };
  const first = await graph.invoke({ question }, options);
  const result = resume === undefined ? first : await graph.invoke(new Command({ resume }), options);
  const { __interrupt__: _, ...values } = result as Record<string, unknown>;
  return values;
};

describe.each(GRAPHS)("over MCP, the graph '%s'", (graph) => {
  const call = async (question: string, capabilities: object = {}, at: TestServer = server) =>
    (await ask(at.url, "tools/call", { name: graph, arguments: { question } }, { capabilities })).message;

  test("returns its output to both official clients, as structured content and as text", async () => {
    const output = await returned("hi");
    expect(output).toEqual({ answer: "bye", mood: "calm" });
    for (const client of [await newClient(server.url), await oldClient(server.url)]) {
      const { tools } = await client.listTools();
      expect(tools.find(({ name }) => name === graph)?.outputSchema).toMatchObject({
        properties: { answer: {}, mood: {} },
      });
      const { structuredContent, content } = await client.callTool({
        name: graph,
        arguments: { question: "hi" },
      });
      expect(structuredContent).toEqual(output);
      expect(content).toEqual([{ type: "text", text: JSON.stringify(output) }]);
    }
  });

  test("returns its output through a server that does not execute it", async () => {
    const { result } = await call("hi", {}, replica);
    expect(result).toMatchObject({ structuredContent: await returned("hi") });
    expect(JSON.stringify(result)).not.toMatch(SECRET);
  });

  test("returns what it has of its output with a question", async () => {
    const output = await returned("ask");
    expect(output).toEqual({ mood: "calm" });
    const { result } = await call("ask");
    expect(result?.["structuredContent"]).toEqual(output);
    const { result: question } = await call("ask", WITH_FORMS);
    expect(JSON.stringify([result, question])).not.toMatch(SECRET);
  });

  test("returns its output from a task that has ended, and shows only its error if it fails", async () => {
    const question = `wait ${newId()}`;
    const { result: created } = await call(question, WITH_TASKS);
    const get = async () =>
      (await ask(replica.url, "tasks/get", { taskId: created?.["taskId"] }, { capabilities: WITH_TASKS }))
        .message.result;
    await eventually("the run waits", () => isAtGate(question));
    const shown = [created, await get()];
    openGate(question);
    const ended = await eventually("the task ends", async () => {
      const task = await get();
      return task?.["status"] === "completed" && task;
    });
    expect(ended["result"]).toMatchObject({ structuredContent: await returned("hi") });
    const { result: failed } = await call("fail");
    expect(failed).toMatchObject({ isError: true });
    expect(JSON.stringify([...shown, ended, failed])).not.toMatch(SECRET);
  });
});

test("over MCP, both official clients take a type that contains itself, as input and as output", async () => {
  const tree = { name: "a", children: [{ name: "b" }, { name: "c", children: [] }] };
  for (const client of [await newClient(server.url), await oldClient(server.url)]) {
    const { tools } = await client.listTools();
    const { inputSchema, outputSchema } = tools.find(({ name }) => name === "tree") ?? {};
    for (const [schema, key] of [[inputSchema, "tree"] as const, [outputSchema, "reversed"] as const])
      expect(schema).toMatchObject({
        properties: { [key]: { allOf: [{ $ref: `#/$defs/${key}_0` }] } },
        $defs: { [`${key}_0`]: { properties: { children: { items: { $ref: `#/$defs/${key}_0` } } } } },
      });
    // The clients check the result.
    const { structuredContent } = await client.callTool({ name: "tree", arguments: { tree } });
    expect(structuredContent).toEqual({
      reversed: { name: "a", children: [{ name: "c", children: [] }, { name: "b" }] },
    });
  }
});

describe.each(GRAPHS)("over A2A, the graph '%s'", (graph) => {
  test("has its output as the artifact of a task, wherever the task is read", async () => {
    const client = await clientOf(server, graph);
    const output = await returned("hi");
    const task = await sent(client, saying([data({ question: "hi" })]));
    expect(task.artifacts[0]?.parts[0]?.content?.value).toEqual(output);
    const found = await (
      await clientOf(replica, graph)
    ).getTask({ tenant: "", id: task.id, historyLength: undefined });
    expect(found.artifacts).toEqual(task.artifacts);
    const { tasks } = await client.listTasks({
      ...{ tenant: "", contextId: "", status: 0, pageSize: 10, pageToken: "", historyLength: 100 },
      ...{ statusTimestampAfter: undefined, includeArtifacts: true },
    });
    expect(tasks.find(({ id }) => id === task.id)?.artifacts).toEqual(task.artifacts);
    expect(JSON.stringify([task, found, tasks])).not.toMatch(SECRET);
  });

  test("streams none of what it keeps to itself, also to those who subscribe later", async () => {
    const client = await clientOf(server, graph);
    const question = `wait ${newId()}`;
    const streamed = eventsOf(client.sendMessageStream(saying([data({ question })])));
    await eventually("the run waits", () => isAtGate(question));
    const { tasks } = await client.listTasks({
      ...{ tenant: "", contextId: "", status: 0, pageSize: 1, pageToken: "", historyLength: 100 },
      ...{ statusTimestampAfter: undefined, includeArtifacts: true },
    });
    const later: unknown[] = [];
    for await (const event of client.resubscribeTask({ tenant: "", id: tasks[0]?.id ?? "" })) {
      later.push(event);
      openGate(question);
    }
    const events = await streamed;
    const last = events.findLast((event) => event?.$case === "artifactUpdate");
    expect(last?.value.artifact?.parts[0]?.content?.value).toEqual(await returned("hi"));
    expect(JSON.stringify([events, tasks, later])).not.toMatch(SECRET);
  });

  test("shows nothing that it keeps to itself when it asks, goes on, or fails", async () => {
    const client = await clientOf(server, graph);
    const asked = await sent(client, saying([data({ question: "ask" })]));
    const answered = await sent(client, saying([data({ text: "fine" })], { taskId: asked.id }));
    expect(answered.artifacts[0]?.parts[0]?.content?.value).toMatchObject({ mood: "calm" });
    const failed = await sent(client, saying([data({ question: "fail" })]));
    expect(JSON.stringify([asked, answered, failed])).not.toMatch(SECRET);
  });
});

describe.each(DIALECTS)("over AG-UI in dialect %s", (dialect) => {
  const isOfState = ({ type }: Event): boolean => type.startsWith("STATE_");
  /** Messages of models are shown while they are written, whatever the graph returns. */
  const shownOf = (page: Front, events: readonly Event[]) => [
    page.state,
    events.filter(isOfState),
    events.at(-1),
  ];

  test.each(GRAPHS)("a page gets the output of '%s' as its state", async (graph) => {
    const page = aFront(server.url, graph, { dialect });
    const events = await page.run({ state: { question: "hi" } });
    expect(page.state).toEqual(await returned("hi"));
    const reloaded = aFront(replica.url, graph, { dialect, threadId: page.threadId });
    const again = await reloaded.run();
    expect(reloaded.state).toEqual(page.state);
    expect(JSON.stringify([...shownOf(page, events), ...shownOf(reloaded, again)])).not.toMatch(SECRET);
  });

  test.each(GRAPHS)("a page sees only the output when '%s' asks, and after the answer", async (graph) => {
    const page = aFront(server.url, graph, { dialect });
    const runId = newId();
    const asked = await page.run({ state: { question: "ask" }, runId });
    expect(page.state).toEqual(await returned("ask"));
    const joined = aFront(server.url, graph, { dialect, threadId: page.threadId });
    const repeated = await joined.run({ state: { question: "ask" }, runId });
    expect(joined.state).toEqual(page.state);
    const { interrupts } = (asked.at(-1)?.["outcome"] ?? {}) as { interrupts?: { id: string }[] };
    const resume = interrupts?.map(({ id }) => ({ interruptId: id, status: "resolved", payload: "fine" }));
    const command = { forwardedProps: { command: { resume: "fine" } } };
    const answered = await page.run(resume === undefined ? command : { resume });
    expect(page.state).toEqual(await returned("ask", "fine"));
    const shown = [...shownOf(page, [...asked, ...answered]), ...shownOf(joined, repeated)];
    expect(JSON.stringify(shown)).not.toMatch(SECRET);
  });

  test("a page that joins a run sees only the output", async () => {
    const page = aFront(server.url, "discreet", { dialect });
    const question = `wait ${newId()}`;
    const run = page.run({ state: { question } });
    await eventually("the run waits", () => isAtGate(question));
    const joined = aFront(replica.url, "discreet", { dialect, threadId: page.threadId });
    const isAsOpened = (event: Event): void => {
      if (event.type === "STEP_STARTED" && event["stepName"] === "reply") openGate(question);
    };
    const events = await joined.run({ onEvent: isAsOpened });
    expect(joined.state).toEqual(await returned("hi"));
    expect(JSON.stringify([...shownOf(page, await run), ...shownOf(joined, events)])).not.toMatch(SECRET);
  });

  test("a run that fails shows its error alone", async () => {
    const page = aFront(server.url, "discreet", { dialect });
    const events: Event[] = [];
    await page
      .run({ state: { question: "fail" }, onEvent: (event) => events.push(event) })
      .catch(() => undefined);
    expect(events.at(-1)).toMatchObject({ type: "RUN_ERROR", message: "no answer" });
    expect(JSON.stringify(shownOf(page, events))).not.toMatch(SECRET);
  });
});

test("the API goes on to answer with the whole state, as the hosted service", async () => {
  const { body } = await server.client
    .post("/runs/wait")
    .send({ assistant_id: "discreet", input: { question: "hi" } });
  expect(body).toMatchObject({ question: "hi", answer: "bye", token: "a secret token" });
});
