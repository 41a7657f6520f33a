import { expect, test } from "vitest";
import { bannerText, databaseName, type BannerFacts } from "../../src/cli/banner.ts";
import { parseConfig } from "../../src/platform/config/config.ts";
import { apiOf, type Result } from "../helpers/api.ts";
import { startTestServer } from "../helpers/app.ts";

const KEY = "0123456789abcdef0123456789abcdef";

const banner = (environment: Record<string, string>, facts: Partial<BannerFacts> = {}): string =>
  bannerText({
    config: parseConfig({}, environment, { terminal: true }),
    ways: (environment["API_KEYS"] ?? "") === "" ? [] : ["API keys"],
    address: "http://127.0.0.1:8123",
    embeddedFolder: "/home/me/project/.threadloom",
    hasConsole: true,
    graphs: ["agent", "approval"],
    ...facts,
  });

test("the banner names the address, the docs, the graphs and the folder of the embedded database", () => {
  const text = banner({});
  expect(text).toContain("http://127.0.0.1:8123\n");
  expect(text).toContain("http://127.0.0.1:8123/docs");
  expect(text).toContain("agent, approval");
  expect(text).toContain("embedded PostgreSQL in /home/me/project/.threadloom");
  expect(text).toContain("curl -N http://127.0.0.1:8123/runs/stream");
});

test("the banner contains neither a database's password nor an API key", () => {
  const text = banner(
    { API_KEYS: KEY, DATABASE_URL: "postgresql://me:hunter2@db.example:5432/threads" },
    { embeddedFolder: undefined },
  );
  expect(text).toContain("PostgreSQL at db.example:5432/threads");
  expect(text).toContain('-H "x-api-key: $API_KEY"');
  expect(text).not.toContain("hunter2");
  expect(text).not.toContain(KEY);
});

test("users of an Auth module are not asked for API keys", () => {
  const signIn = { noun: "token", header: "Authorization", prefix: "Bearer " };
  const text = banner({}, { ways: ["auth"], signIn });
  expect(text).toContain("Access    with the credentials of auth in langgraph.json\n");
  expect(text).toContain('-H "authorization: Bearer $TOKEN"');
  expect(text).not.toMatch(/api.key/i);
  expect(banner({}, { ways: ["API keys", "auth"], signIn })).toContain(
    "Access    with an API key, or the credentials of auth in langgraph.json\n",
  );
  const odd = banner({}, { ways: ["auth"], signIn: { ...signIn, header: 'x"; rm -rf /', prefix: "" } });
  expect(odd).not.toContain("rm -rf");
});

test("an address that stands for all interfaces is printed as one that can be called", () => {
  const text = banner({ HOST: "0.0.0.0", API_KEYS: KEY }, { address: "http://0.0.0.0:8123" });
  expect(text).toContain("curl -N http://127.0.0.1:8123/");
  expect(text).toContain(
    "Address   http://0.0.0.0:8123 (every address of this machine; from here: http://127.0.0.1:8123)\n",
  );
});

test("a worker shows no example request", () => {
  expect(banner({ ROLE: "worker" })).not.toContain("curl");
});

test("a database behind a unix socket is named by its folder", () => {
  expect(databaseName("postgresql:///threads?host=/run/postgresql")).toBe("/run/postgresql/threads");
});

const MESSAGE = { role: "user", content: "Hello" };
/** The body of the printed command, as a shell parses it. */
const sentBy = (text: string): Record<string, unknown> => {
  const quoted = /-d '(.*)'\n/.exec(text)?.[1] ?? "";
  return JSON.parse(quoted.replaceAll("'\\''", "'")) as Record<string, unknown>;
};
const inputFor = (properties: NonNullable<BannerFacts["inputSchema"]>): unknown =>
  sentBy(banner({}, { inputSchema: { type: "object", properties } })).input;

test.each<[string, NonNullable<BannerFacts["inputSchema"]>, object]>([
  ["no keys", {}, {}],
  [
    "messages",
    { messages: { type: "array", langgraph_type: "messages" }, topic: { type: "string" } },
    { messages: [MESSAGE] },
  ],
  [
    "messages under another name",
    { chat: { type: "array", langgraph_type: "messages" } },
    { chat: [MESSAGE] },
  ],
  ["a list of its own called messages", { messages: { type: "array", items: { type: "number" } } }, {}],
  [
    "plain values",
    {
      topic: { type: "string" },
      times: { type: "integer" },
      loud: { type: "boolean" },
      tone: { enum: ["it's dry"] },
    },
    { topic: "example", times: 1, loud: true, tone: "it's dry" },
  ],
  [
    "values of which no example is known, or that have a default",
    { seen: { type: "array" }, any: {}, depth: { type: "integer", default: 3 } },
    {},
  ],
])("the example request fits a graph that takes %s", (_, properties, input) => {
  expect(inputFor(properties)).toEqual(input);
});

test("a graph with unknown input gets an example with a message", () => {
  expect(sentBy(banner({})).input).toEqual({ messages: [MESSAGE] });
});

test("a graph with many keys gets an example with some of them", () => {
  const keys = Array.from({ length: 60 }, (_, index) => `key${index}`);
  const properties = Object.fromEntries(keys.map((key) => [key, { type: "string" }]));
  expect(Object.keys(inputFor(properties) as object)).toEqual(keys.slice(0, 5));
});

test("graphs with and without messages accept their examples", async () => {
  const server = await startTestServer();
  try {
    const api = apiOf(server);
    for (const graph of ["counter", "sleep"]) {
      const { body } = await api.get<{ input_schema: NonNullable<BannerFacts["inputSchema"]> }>(
        `/assistants/${graph}/schemas`,
      );
      const text = banner({}, { graphs: [graph], inputSchema: body.input_schema });
      const { stream_mode: _, ...request } = sentBy(text);
      const answer = await api.post<Result>("/runs/wait", request);
      expect([graph, answer.status, answer.body.__error__]).toEqual([graph, 200, undefined]);
    }
  } finally {
    await server.close();
  }
});
