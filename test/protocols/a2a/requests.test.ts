import { describe, expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import type { Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { onServer } from "../../helpers/servers.ts";

/** Requests that no official client sends. */

let server: TestServer;
let api: Api;
onServer({}, (opened) => ({ server, api } = opened));

interface Answer {
  status: number;
  headers: Headers;
  body: { result?: Record<string, unknown>; error?: { code: number; message: string } };
}
const post = async (path: string, body: string, headers: Record<string, string> = {}): Promise<Answer> => {
  const answer = await fetch(`${server.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body,
  });
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as Answer["body"] };
};
const rpc = async (method: string, params: unknown, version?: string): Promise<Answer> =>
  await post("/a2a/two-step", JSON.stringify({ jsonrpc: "2.0", id: 7, method, params }), {
    ...(version === undefined ? {} : { "a2a-version": version }),
  });
const codeOf = async (answer: Promise<Answer>): Promise<number | undefined> =>
  (await answer).body.error?.code;

const message = { role: "user", messageId: "m", parts: [{ kind: "text", text: "hi" }] };
const newMessage = { role: "ROLE_USER", messageId: "m", parts: [{ text: "hi" }] };

describe("the version", () => {
  test("without a header is 0.3", async () => {
    const { body } = await rpc("message/send", { message });
    expect(body).toMatchObject({
      jsonrpc: "2.0",
      id: 7,
      result: { kind: "task", status: { state: "completed" } },
    });
    expect((await rpc("message/send", { message }, "")).body.result).toMatchObject({ kind: "task" });
    expect((await rpc("message/send", { message }, "0.3.0")).body.result).toMatchObject({ kind: "task" });
  });

  test("1.0 and its patches speak the newer dialect", async () => {
    for (const version of ["1.0", "1.0.1"])
      expect((await rpc("SendMessage", { message: newMessage }, version)).body.result).toMatchObject({
        task: { status: { state: "TASK_STATE_COMPLETED" } },
      });
  });

  test("another version is refused", async () => {
    expect(await codeOf(rpc("SendMessage", { message: newMessage }, "2.0"))).toBe(-32009);
    expect(await codeOf(rpc("SendMessage", { message: newMessage }, "constructor"))).toBe(-32009);
  });

  test("a method of the other dialect is unknown", async () => {
    expect(await codeOf(rpc("SendMessage", { message: newMessage }))).toBe(-32601);
    expect(await codeOf(rpc("message/send", { message }, "1.0"))).toBe(-32601);
    expect(await codeOf(rpc("constructor", {}, "1.0"))).toBe(-32601);
    expect(await codeOf(rpc("tasks/list", {}))).toBe(-32601);
  });
});

test("a message of 0.3 is waited for unless 'blocking' is false", async () => {
  const stateOf = async (configuration: object): Promise<unknown> =>
    (await rpc("message/send", { message, configuration })).body.result?.["status"];
  expect(await stateOf({ acceptedOutputModes: ["text/plain"] })).toMatchObject({ state: "completed" });
  expect(await stateOf({ blocking: true })).toMatchObject({ state: "completed" });
  expect(await stateOf({ blocking: false })).toMatchObject({
    state: expect.stringMatching(/submitted|working/),
  });
});

test("what is no JSON-RPC is refused with its codes", async () => {
  const parse = await post("/a2a/two-step", "{");
  expect([parse.status, parse.body.error?.code]).toEqual([400, -32700]);
  for (const version of ["0.3", "1.0"]) {
    const headers = { "a2a-version": version };
    for (const body of ["null", "[]", "7", '"x"', "{}", '{"jsonrpc":"2.0","id":{},"method":"tasks/get"}'])
      expect([-32600, -32602]).toContain(await codeOf(post("/a2a/two-step", body, headers)));
  }
});

test.each([
  ["message/send", "0.3", message],
  ["SendMessage", "1.0", newMessage],
])("%s with parameters of wrong types is the caller's mistake", async (method, version, good) => {
  const before = server.lines.length;
  const bad: unknown[] = [
    null,
    [],
    {},
    { message: null },
    { message: "x" },
    { message: { ...good, parts: [null] } },
    { message: { ...good, parts: { length: 1e9 } } },
    { message: { ...good, parts: [{ kind: "data", data: [1] }, { data: [1] }] } },
    { message: { ...good, messageId: "" } },
    { message: { ...good, messageId: "m".repeat(10_000) } },
    { message: { ...good, messageId: "\u0000" } },
    { message: { ...good, role: version === "0.3" ? "agent" : "ROLE_AGENT" } },
    { message: { ...good, role: "constructor" } },
    { message: { ...good, contextId: { $gt: "" } } },
    { message: { ...good, contextId: "../.." } },
    { message: good, configuration: { historyLength: -1 } },
    { message: good, configuration: { historyLength: "many" } },
  ];
  for (const params of bad) {
    const { status, body } = await rpc(method, params, version);
    expect([JSON.stringify(params).slice(0, 80), status, body.error?.code]).toEqual([
      JSON.stringify(params).slice(0, 80),
      200,
      -32602,
    ]);
  }
  const task = await rpc(method, { message: { ...good, taskId: { a: 1 } } }, version);
  expect([-32001, -32602]).toContain(task.body.error?.code);
  expect(server.lines.slice(before).filter((line) => line.includes('"level":50'))).toEqual([]);
});

test("an unknown assistant is a 404", async () => {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "message/send", params: { message } });
  expect((await post("/a2a/nowhere", body)).status).toBe(404);
  expect((await api.get("/a2a/nowhere/.well-known/agent-card.json")).status).toBe(404);
  expect((await api.get("/.well-known/agent-card.json?assistant_id=constructor")).status).toBe(404);
  expect((await api.get("/.well-known/agent-card.json")).status).toBe(422);
});

test("parallel interrupts are answered in one message, by their ids", async () => {
  // The graph `approval` has one interrupt, so an unknown id is an ordinary answer, which it asks about again.
  const sent = await post(
    "/a2a/approval",
    JSON.stringify({ jsonrpc: "2.0", id: 1, method: "message/send", params: { message } }),
  );
  const { id, status } = sent.body.result as { id: string; status: { message: { parts: object[] } } };
  const [part] = status.message.parts as { metadata: { interrupt_id: string } }[];
  const interruptId = part?.metadata.interrupt_id ?? "";
  const answer = (data: object) => ({
    ...{ jsonrpc: "2.0", id: 1, method: "message/send" },
    params: { message: { ...message, messageId: newId(), taskId: id, parts: [{ kind: "data", data }] } },
  });
  const resume = [{ id: interruptId, value: "reject" }];
  const answered = await post("/a2a/approval", JSON.stringify(answer({ resume })));
  expect(answered.body.result).toMatchObject({
    id,
    status: { state: "completed" },
    artifacts: [{ parts: [{ text: "The draft was rejected; nothing was sent." }] }],
  });
});

describe("the card", () => {
  interface Card {
    url: string;
    protocolVersion: string;
    name: string;
    description: string;
    skills: { id: string; name: string }[];
    supportedInterfaces: { url: string; protocolBinding: string; protocolVersion: string }[];
    securitySchemes?: unknown;
    security?: unknown;
  }
  test("names the addresses of an assistant in both dialects", async () => {
    const { assistant_id: id } = (
      await api.post<{ assistant_id: string }>("/assistants", {
        ...{ graph_id: "agent", name: "Weather", description: "Knows the weather." },
        metadata: {
          a2a: { skills: [{ id: "rain", name: "Rain", description: "Will it rain?", tags: ["weather"] }] },
        },
      })
    ).body;
    for (const path of [
      `/.well-known/agent-card.json?assistant_id=${id}`,
      `/a2a/${id}/.well-known/agent-card.json`,
    ]) {
      const { body } = await api.get<Card>(path);
      expect(body).toMatchObject({
        name: "Weather",
        description: "Knows the weather.",
        protocolVersion: "0.3",
      });
      expect(body.url).toBe(`${server.url}/a2a/${id}`);
      expect(
        body.supportedInterfaces.map((each) => `${each.protocolBinding} ${each.protocolVersion}`),
      ).toEqual([...["JSONRPC 1.0", "JSONRPC 0.3"]]);
      expect(new Set(body.supportedInterfaces.map(({ url }) => url))).toEqual(
        new Set([`${server.url}/a2a/${id}`]),
      );
      expect(body.skills).toMatchObject([{ id: "rain", name: "Rain" }]);
      expect(body.securitySchemes).toBeUndefined();
    }
  });

  test("has an assistant without skills do what its description says", async () => {
    const { body } = await api.get<Card>("/.well-known/agent-card.json?assistant_id=two-step");
    expect(body.skills).toHaveLength(1);
  });

  test("shows nothing of metadata that is no skill", async () => {
    const skills = [
      7,
      null,
      { id: "x", tags: [1, "one"], name: {}, securityRequirements: [null], examples: "no" },
    ];
    const made = await api.post<{ assistant_id: string }>("/assistants", {
      ...{ graph_id: "agent", name: "Odd", metadata: { a2a: { skills } } },
    });
    const answer = await api.get<Card>(`/a2a/${made.body.assistant_id}/.well-known/agent-card.json`);
    expect(answer.status).toBe(200);
    expect(answer.body.skills).toMatchObject([{ id: "x", name: "Odd", tags: ["one"] }]);
  });

  test("names the host that the client asked", async () => {
    const answer = await fetch(`${server.url}/a2a/agent/.well-known/agent-card.json`, {
      headers: { "a2a-version": "1.0", "x-forwarded-host": "agents.example", "x-forwarded-proto": "https" },
    });
    const { supportedInterfaces } = (await answer.json()) as Card;
    expect(supportedInterfaces[0]?.url).toMatch(/^https:\/\/agents\.example\/a2a\//);
  });

  test("of a server with keys needs one, and says so", async () => {
    const guarded = await startTestServer({ apiKeys: ["a-key"] });
    try {
      const url = `${guarded.url}/a2a/agent/.well-known/agent-card.json`;
      expect((await fetch(url)).status).toBe(401);
      const card = (await (await fetch(url, { headers: { "x-api-key": "a-key" } })).json()) as Card;
      expect(card.securitySchemes).toEqual({ apiKey: { type: "apiKey", in: "header", name: "X-Api-Key" } });
      expect(card.security).toEqual([{ apiKey: [] }]);
      const headers = { "x-api-key": "a-key", "a2a-version": "1.0" };
      expect(await (await fetch(url, { headers })).json()).toMatchObject({
        securitySchemes: { apiKey: { apiKeySecurityScheme: { location: "header", name: "X-Api-Key" } } },
        securityRequirements: [{ schemes: { apiKey: {} } }],
      });
    } finally {
      await guarded.close();
    }
  });
});

test("below a mount prefix, the card has the prefix, and nothing is served with 'disable_a2a'", async () => {
  const mounted = await startTestServer({ projectKeys: { http: { mount_prefix: "/v1" } } });
  const disabled = await startTestServer({ projectKeys: { http: { disable_a2a: true } } });
  try {
    const card = await fetch(`${mounted.url}/a2a/agent/.well-known/agent-card.json`);
    expect(((await card.json()) as { url: string }).url).toMatch(/\/v1\/a2a\/[0-9a-f-]{36}$/);
    for (const path of [
      "/a2a/agent/.well-known/agent-card.json",
      "/.well-known/agent-card.json?assistant_id=agent",
    ])
      expect((await fetch(`${disabled.url}${path}`)).status).toBe(404);
    expect((await fetch(`${disabled.url}/a2a/agent`, { method: "POST", body: "{}" })).status).toBe(404);
  } finally {
    await mounted.close();
    await disabled.close();
  }
});
