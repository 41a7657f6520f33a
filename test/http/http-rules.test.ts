import { Client } from "@langchain/langgraph-sdk";
import { Client as NewClient } from "sdk-1.15";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import WebSocket from "ws";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { startCuttingProxy } from "../helpers/cutting-proxy.ts";
import { isAtGate, openGate } from "../fixtures/gates.ts";
import { eventually } from "../helpers/conditions.ts";
import { newId } from "../../src/platform/lib/ids.ts";

/** `http` of langgraph.json, except for its `app`. */

const graphConfigFile = fileURLToPath(new URL("../api/runs/graphs/langgraph.json", import.meta.url));

const status = async (address: string, init?: RequestInit): Promise<number> => {
  const answer = await fetch(address, { redirect: "manual", ...init });
  await answer.arrayBuffer();
  return answer.status;
};

describe("below a mount prefix", () => {
  let server: TestServer;
  let root: string;
  beforeAll(async () => {
    server = await startTestServer({
      graphConfigFile,
      projectKeys: {
        http: {
          mount_prefix: "/agents/v1",
          configurable_headers: { includes: ["x-org-*", "thread_id", "checkpoint_id"] },
          logging_headers: { includes: ["x-request-id"] },
        },
      },
    });
    root = server.url.replace("/agents/v1", "");
  });
  afterAll(() => server.close());

  test("every route is served, and outside only the health probe", async () => {
    expect(server.url).toMatch(/\/agents\/v1$/);
    expect(await status(`${server.url}/ok`)).toBe(200);
    expect(await status(`${server.url}/info?x=1`)).toBe(200);
    expect(await status(`${root}/ok`)).toBe(200);
    for (const path of ["/", "/info", "/docs", "/agents", "/agents/v10/info", "/agents/v1x", "//outside"]) {
      const answer = await fetch(`${root}${path}`);
      expect([path, answer.status, await answer.json()]).toEqual([
        path,
        404,
        { detail: `There is no route GET ${path}.` },
      ]);
    }
    const missing = await fetch(`${server.url}/nope`);
    expect(await missing.json()).toEqual({ detail: "There is no route GET /agents/v1/nope." });
  });

  test("the page of the API and its assets are found, and its document contains the prefix", async () => {
    const redirected = await fetch(server.url, { redirect: "manual" });
    expect(redirected.headers.get("location")).toBe("/agents/v1/docs");
    const page = await fetch(`${server.url}/docs`);
    const html = await page.text();
    const assets = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path ?? "");
    expect(assets.length).toBeGreaterThan(3);
    for (const asset of assets)
      expect([asset, await status(new URL(asset, page.url).href)]).toEqual([asset, 200]);
    const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as Record<string, unknown>;
    expect(document.servers).toEqual([{ url: "/agents/v1" }]);
    expect(document.paths).toHaveProperty("/threads/{thread_id}");
  });

  for (const [line, Line] of [
    ["1.12", Client],
    ["1.15", NewClient as unknown as typeof Client],
  ] as const)
    test(`the SDK ${line} runs, streams, and reconnects after its connection was cut`, async () => {
      const proxy = await startCuttingProxy({ url: root });
      const client = new Line({ apiUrl: `${proxy.url}/agents/v1`, apiKey: null });
      const { thread_id: threadId } = await client.threads.create();
      let created: unknown;
      const seen: unknown[] = [];
      const label = `cut of ${line}`;
      for await (const { event, data } of client.runs.stream(threadId, "gate", {
        input: { label } as Record<string, unknown>,
        streamMode: "custom",
        onDisconnect: "continue",
        onRunCreated: (run) => (created = run),
      })) {
        if (event !== "custom") continue;
        seen.push(data);
        if (seen.length > 1) continue;
        proxy.cut();
        await eventually("the run is at its gate", () => isAtGate(label));
        openGate(label);
      }
      expect(seen).toEqual([{ waiting: label }, { opened: label }]);
      expect(created).toMatchObject({ thread_id: threadId });
      expect(proxy.connections).toBeGreaterThan(1);
      await proxy.close();
    });

  test("a WebSocket opens", async () => {
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/threads/${newId()}/stream/events`);
    const answer = await new Promise<string>((resolve, reject) => {
      socket.once("error", reject);
      socket.once("open", () => socket.send(JSON.stringify({ id: 1, method: "none", params: {} })));
      socket.once("message", (data) => resolve(String(data as Buffer)));
    });
    expect(JSON.parse(answer)).toMatchObject({ id: 1, error: "unknown_command" });
    socket.terminate();
  });

  describe("the chosen headers", () => {
    const HEADERS = { "X-Org-Id": "acme", "x-other": "no", thread_id: "mine", "x-request-id": "their-17" };
    const clientWith = (headers: Record<string, string>) =>
      new Client({ apiUrl: server.url, apiKey: null, defaultHeaders: headers });
    type Mirrored = { configurable: Record<string, unknown>; context: Record<string, unknown> };

    test("are in the configuration of a run, override its body, and appear nowhere else", async () => {
      const client = clientWith(HEADERS);
      const { thread_id: threadId } = await client.threads.create();
      const run = {
        input: {},
        config: { configurable: { own: "1", "x-org-id": "forged" } },
        streamMode: "debug" as const,
      };
      const events = [];
      for await (const event of client.runs.stream(threadId, "mirror", run)) events.push(event);
      const { values } = await client.threads.getState<Mirrored>(threadId);
      expect(values.configurable).toMatchObject({ own: "1", "x-org-id": "acme" });
      expect(values.configurable).not.toHaveProperty("x-other");
      expect(values.context ?? {}).not.toHaveProperty("x-request-id");

      const logged = JSON.stringify(
        events.map(({ data }) => (data as { payload?: { config?: unknown } }).payload?.config),
      );
      expect(logged).not.toContain("acme");
      const [record] = await client.runs.list(threadId);
      expect(JSON.stringify(record)).not.toContain("acme");
      const [state] = await client.threads.getHistory(threadId);
      expect(JSON.stringify(state?.metadata)).not.toContain("acme");
      expect(
        JSON.stringify(await client.threads.get(threadId).then(({ config }: { config?: unknown }) => config)),
      ).not.toContain("acme");
      // The next run comes from another user.
      const next = (await clientWith({}).runs.wait(threadId, "mirror", { input: {} })) as Mirrored;
      expect(next.configurable["x-org-id"]).not.toBe("acme");
    });

    test.each(["/threads/{}/runs/wait", "/runs/wait", "/threads/{}/commands"])(
      "reach a run of %s",
      async (path) => {
        const client = clientWith(HEADERS);
        const { thread_id: threadId } = await client.threads.create();
        const isCommand = path.endsWith("commands");
        const params = { assistant_id: "mirror", input: {} };
        const body = isCommand ? { id: 1, method: "run.start", params } : params;
        const answer = await fetch(`${server.url}${path.replace("{}", threadId)}`, {
          method: "POST",
          headers: { ...HEADERS, "content-type": "application/json" },
          body: JSON.stringify(body),
        });
        const answered = (await answer.json()) as Mirrored & { result?: { run_id: string } };
        const values = isCommand
          ? ((await client.runs.join(threadId, answered.result?.run_id ?? "")) as Mirrored)
          : answered;
        expect(values.configurable["x-org-id"]).toBe("acme");
      },
    );

    test("for the log are in a line for each request, without its query", async () => {
      await fetch(`${server.url}/info?api_key=secret`, { headers: HEADERS });
      await expect
        .poll(() => server.lines.map((line) => JSON.parse(line) as Record<string, unknown>))
        .toContainEqual(
          expect.objectContaining({
            msg: "a request was answered",
            path: "/agents/v1/info",
            status: 200,
            request_headers: { "x-request-id": "their-17" },
          }),
        );
      expect(server.lines.join("")).not.toContain("secret");
    });
  });
});

const PATHS: Record<string, [method: string, path: string][]> = {
  assistants: [
    ["POST", "/assistants/search"],
    ["GET", "/assistants/agent"],
  ],
  threads: [
    ["POST", "/threads"],
    ["GET", `/threads/${newId()}/state`],
    ["GET", `/threads/${newId()}/stream`],
    ["POST", `/threads/${newId()}/commands`],
    ["POST", `/threads/${newId()}/stream/events`],
  ],
  runs: [
    ["POST", "/runs"],
    ["POST", "/runs/crons"],
    ["POST", `/threads/${newId()}/runs`],
    ["POST", `/threads/${newId()}/commands`],
    ["POST", `/threads/${newId()}/stream/events`],
  ],
  store: [["PUT", "/store/items"]],
  ui: [["POST", "/ui/agent"]],
  meta: [
    ["GET", "/"],
    ["GET", "/info"],
    ["GET", "/metrics"],
    ["GET", "/docs"],
    ["GET", "/openapi.json"],
  ],
};

describe("a disabled part of the API", () => {
  const answers = async (server: TestServer, part: string) =>
    await Promise.all(
      (PATHS[part] ?? []).map(async ([method, path]) => {
        const answer = await fetch(`${server.url}${path}`, {
          method,
          redirect: "manual",
          ...(method === "GET" ? {} : { body: "{}" }),
        });
        const body = await answer.text();
        return { path, gone: body === JSON.stringify({ detail: `There is no route ${method} ${path}.` }) };
      }),
    );

  test.each([
    ["threads", "store", "meta"],
    ["runs", "assistants", "ui"],
  ])("answers 404: %s, %s, %s; the rest works", async (...parts) => {
    const server = await startTestServer({
      projectKeys: { http: Object.fromEntries(parts.map((part) => [`disable_${part}`, true])) },
    });
    try {
      expect(await status(`${server.url}/ok`)).toBe(200);
      for (const part of parts) {
        for (const { path, gone } of await answers(server, part)) expect([path, gone]).toEqual([path, true]);
      }
      const rest = Object.keys(PATHS).filter((part) => !parts.includes(part));
      for (const part of rest) {
        const [first] = await answers(server, part);
        expect([part, first?.gone]).toEqual([part, false]);
      }
      const socket = new WebSocket(`${server.url.replace("http", "ws")}/threads/${newId()}/stream/events`);
      const refused = await new Promise((resolve) => {
        socket.once("unexpected-response", (_request, response) => resolve(response.statusCode));
        socket.once("open", () => resolve("open"));
        socket.once("error", () => undefined);
      });
      expect(refused).toBe(404);
      socket.terminate();
      if (!parts.includes("meta")) {
        const { paths } = (await (await fetch(`${server.url}/openapi.json`)).json()) as { paths: object };
        expect(Object.keys(paths).filter((path) => /runs|commands|^\/assistants|^\/ui/.test(path))).toEqual(
          [],
        );
        expect(paths).toHaveProperty("/threads/{thread_id}/state");
      }
    } finally {
      await server.close();
    }
  });
});
