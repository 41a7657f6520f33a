import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { Api } from "../../helpers/api.ts";
import { startTestServer } from "../../helpers/app.ts";
import { onServer } from "../../helpers/servers.ts";
import { AGUI_GRAPHS, aFront, DIALECTS } from "./clients.ts";

let url: string;
let api: Api;
onServer({ graphConfigFile: AGUI_GRAPHS }, (opened) => {
  ({ url } = opened.server);
  ({ api } = opened);
});

/** The answer of the graph `front-end`. */
interface Seen {
  actions: string[];
  context: string[];
  given: [type: string, content: unknown][];
}
const seenBy = (page: { messages: { content?: unknown }[] }): Seen =>
  JSON.parse(String(page.messages.at(-1)?.content)) as Seen;

const TOOLS = [{ name: "show_chart", description: "Shows a chart.", parameters: { type: "object" } }];
const CONTEXT = [{ description: "page", value: "home" }];

describe.each(DIALECTS)("of a client of %s", (dialect) => {
  test("the graph gets only the messages that its thread does not have", async () => {
    const page = aFront(url, "front-end", { dialect });
    await page.run({ say: "one" });
    const first = page.messages[1]?.content;
    await page.run({ say: "two" });
    expect(seenBy(page).given).toEqual([
      ["human", "one"],
      ["ai", first],
      ["human", "two"],
    ]);
  });

  test("an unchanged state does not pass through reducers again", async () => {
    const page = aFront(url, "front-end", { dialect });
    await page.run({ say: "one" });
    await page.run({ say: "two" });
    expect(page.state).toMatchObject({ seen: ["turn 1", "turn 2"] });
  });

  test("tools and context are in the input of a graph that takes them", async () => {
    const page = aFront(url, "front-end", { dialect });
    await page.run({ say: "x", tools: TOOLS, context: CONTEXT });
    expect(seenBy(page)).toMatchObject({ actions: ["show_chart"], context: ["page: home"] });
  });
});

test("tools and context are in the configuration of a graph that does not take them in its input", async () => {
  const page = aFront(url, "two-step");
  await page.run({
    say: "x",
    tools: TOOLS,
    context: CONTEXT,
    forwardedProps: { config: { configurable: { mine: 1 }, tags: ["a"] }, context: { theirs: 2 } },
  });
  const [run] = await api.runs(page.threadId);
  const { config } = run?.kwargs as { config: { tags: string[]; configurable: Record<string, unknown> } };
  expect(config).toMatchObject({
    tags: ["a"],
    configurable: {
      mine: 1,
      "ag-ui": { tools: [{ type: "function", function: { name: "show_chart" } }], context: CONTEXT },
    },
  });
});

test("messages of every role reach the graph, and come back as they were", async () => {
  const page = aFront(url, "front-end");
  const image = { type: "image", source: { type: "url", value: "https://example.com/cat.png" } };
  const photo = { type: "image", source: { type: "data", value: "AAAA", mimeType: "image/png" } };
  const sound = { type: "audio", source: { type: "data", value: "BBBB", mimeType: "audio/wav" } };
  const file = { type: "document", source: { type: "file", value: "file-1", mimeType: "application/pdf" } };
  const call = { id: "call-1", type: "function", function: { name: "look_up", arguments: '{"word":"x"}' } };
  const messages = [
    { id: "1", role: "system", content: "Be brief." },
    { id: "2", role: "developer", content: "Be kind." },
    { id: "3", role: "user", content: [{ type: "text", text: "What is it?" }, image, photo, sound, file] },
    { id: "4", role: "assistant", content: "", toolCalls: [call] },
    { id: "5", role: "tool", toolCallId: "call-1", content: "A cat." },
    { id: "6", role: "user", content: "Thanks." },
  ];
  await page.run({ messages });
  expect(seenBy(page).given).toEqual([
    ["system", "Be brief."],
    ["system", "Be kind."],
    [
      "human",
      [
        { type: "text", text: "What is it?" },
        { type: "image_url", image_url: { url: "https://example.com/cat.png" } },
        { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
        { type: "audio", data: "BBBB", mimeType: "audio/wav" },
        { type: "file", fileId: "file-1", mimeType: "application/pdf" },
      ],
    ],
    ["ai", ""],
    ["tool", "A cat."],
    ["human", "Thanks."],
  ]);
  expect(page.messages.slice(0, -1)).toEqual(messages);
});

test("attachments of clients before 1.0 reach the graph", async () => {
  const binary = { type: "binary", mimeType: "image/png", data: "AAAA" };
  const answer = await fetch(`${url}/agui/front-end`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      threadId: randomUUID(),
      runId: "1",
      messages: [{ id: "1", role: "user", name: null, content: [{ type: "text", text: "Look" }, binary] }],
      forwardedProps: null,
    }),
  });
  expect(answer.status).toBe(200);
  expect(await answer.text()).toContain("data:image/png;base64,AAAA");
});

test("a cut-off tool call of the page does not stop the next turn", async () => {
  const page = aFront(url, "front-end");
  const call = { id: "c", type: "function", function: { name: "f", arguments: '{"wo' } };
  await page.run({
    messages: [{ id: "a", role: "assistant", content: "Half", toolCalls: [call] }],
    say: "go on",
  });
  expect(seenBy(page).given).toEqual([
    ["ai", "Half"],
    ["human", "go on"],
  ]);
});

describe("a request that is not valid", () => {
  const post = async (body: unknown, assistant = "two-step") => {
    const answer = await api.post<{ detail: string }>(`/agui/${assistant}`, body);
    return [answer.status, answer.body.detail];
  };
  const valid = { threadId: randomUUID(), runId: "1", messages: [] };

  test("is refused with the field's name, and nothing is stored", async () => {
    expect(await post({ ...valid, threadId: "chat" })).toEqual([422, "'threadId': must be a UUID."]);
    expect(await post({ ...valid, runId: "" })).toEqual([422, "'runId': must not be empty."]);
    expect(await post({ threadId: valid.threadId, runId: "1" })).toEqual([422, "'messages': is required."]);
    const unknown = { id: "1", role: "robot", content: "x" };
    expect((await post({ ...valid, messages: [unknown] }))[0]).toBe(422);
    const said = [{ id: "1", role: "user", content: "x" }];
    expect(await post({ ...valid, messages: said, forwardedProps: { config: 3 } })).toEqual([
      422,
      "'config': must be an object, not an integer.",
    ]);
    expect((await api.get(`/threads/${valid.threadId}`)).status).toBe(404);
  });

  test("is a 404 for an assistant that does not exist", async () => {
    expect(await post(valid, "nobody")).toEqual([404, "Assistant 'nobody' not found."]);
    expect((await post(valid, "constructor"))[0]).toBe(404);
  });

  test("is refused if a name in it would change objects, while other inherited names do no harm", async () => {
    const text = JSON.stringify({ ...valid, state: { name: 1 } }).replace("name", "__proto__");
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}/agui/double`, { method: "POST", headers, body: text });
    expect([answer.status, await answer.text()]).toEqual([422, expect.stringContaining("'__proto__'")]);
    const page = aFront(url, "double");
    await page.run({ state: { number: 1, constructor: 2, toString: 3 } });
    expect(page.state).toEqual({ number: 1, doubled: 2 });
  });
});

test("http.disable_agui removes the routes", async () => {
  const server = await startTestServer({
    graphConfigFile: fileURLToPath(new URL("./disabled/langgraph.json", import.meta.url)),
  });
  try {
    for (const path of ["/agui/two-step", "/agui/two-step/cancel"]) {
      const answer = await fetch(`${server.url}${path}`, { method: "POST", body: "{}" });
      expect(answer.status).toBe(404);
    }
    const described = (await (await fetch(`${server.url}/openapi.json`)).json()) as { paths: object };
    expect(Object.keys(described.paths).filter((path) => path.startsWith("/agui"))).toEqual([]);
  } finally {
    await server.close();
  }
});
