import pg from "pg";
import { Client } from "@langchain/langgraph-sdk";
import { request as nodeRequest } from "node:http";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import WebSocket from "ws";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { hasLeft, seen } from "./apps/app.ts";

const appAt = (reference: string): string => fileURLToPath(new URL(`./apps/${reference}`, import.meta.url));
const JSON_BODY = { "content-type": "application/json" };

describe("an application of Hono", () => {
  let server: TestServer;
  let client: Client;
  beforeAll(async () => {
    server = await startTestServer({ projectKeys: { http: { app: appAt("app.ts:app") } } });
    client = new Client({ apiUrl: server.url, apiKey: null, callerOptions: { maxRetries: 0 } });
  });
  afterAll(() => server.close());

  const ask = async (path: string, init: RequestInit & { ask?: string } = {}) => {
    const headers = {
      ...JSON_BODY,
      ...(init.ask === undefined ? {} : { "x-ask": init.ask }),
      ...init.headers,
    };
    const answer = await fetch(`${server.url}${path}`, { ...init, headers });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, text };
  };

  test("answers its own routes, also those that the API has", async () => {
    const hello = await ask("/hello/Ann");
    expect([hello.status, JSON.parse(hello.text)]).toEqual([200, { hello: "Ann", user: null }]);
    expect(hello.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
    expect(hello.headers.get("x-content-type-options")).toBe("nosniff");
    expect(JSON.parse((await ask("/info")).text)).toEqual({ mine: true });
    expect((await ask("/cookies")).headers.getSetCookie()).toEqual(["a=1", "b=2"]);
    expect((await ask("/teapot")).status).toBe(418);
    expect((await ask("/missing")).text).not.toContain("There is no route");
  });

  test("wraps the API: each answer passes through it unchanged", async () => {
    const { thread_id: threadId } = await client.threads.create({ metadata: { a: 1 } });
    const found = await ask(`/threads/${threadId}`);
    expect([found.headers.get("x-own"), found.headers.get("x-guard")]).toEqual(["200", "passed"]);
    expect(JSON.parse(found.text)).toMatchObject({ thread_id: threadId, metadata: { a: 1 } });
    const missing = await ask(`/threads/${newId()}`);
    expect([missing.status, missing.headers.get("x-own")]).toEqual([404, "404"]);
    const none = await ask("/nope");
    expect([none.status, none.text, none.headers.get("x-own")]).toEqual([
      404,
      '{"detail":"There is no route GET /nope."}',
      "404",
    ]);
    const removed = await ask(`/threads/${threadId}`, { method: "DELETE", headers: { "content-type": "" } });
    expect([removed.status, removed.text]).toEqual([204, ""]);
    expect((await ask("/docs")).text).toContain("swagger");
    expect((await fetch(`${server.url}/info`, { method: "HEAD" })).status).toBe(200);
  });

  test("is not called for health probes", async () => {
    const probe = await ask("/ok", { ask: "throw" });
    expect([probe.status, probe.headers.get("x-own")]).toEqual([200, null]);
  });

  test.each([
    ["refuse", 403, { detail: "not you" }],
    ["throw", 500, { detail: "The server could not answer this request; its log says why." }],
    ["throw-later", 500, { detail: "The server could not answer this request; its log says why." }],
  ])("decides about requests to the API: %s", async (asked, status, body) => {
    const answer = await ask("/threads/search", { method: "POST", body: "{}", ask: asked });
    expect([answer.status, JSON.parse(answer.text)]).toEqual([status, body]);
    if (asked !== "refuse") {
      expect(answer.text).not.toContain("secret");
      const log = server.lines.join("");
      expect(log).toContain("custom-app/apps/app.ts");
      expect(log).not.toContain("secret of the application");
    }
  });

  test("may read a body before the API, replace it, and set headers", async () => {
    const body = JSON.stringify({ metadata: { text: "ä".repeat(100_000) } });
    const read = await ask("/threads", {
      method: "POST",
      body: JSON.stringify({ metadata: { b: 2 } }),
      ask: "read",
    });
    expect(JSON.parse(read.text)).toMatchObject({ metadata: { b: 2 } });
    expect(read.headers.get("x-body")).toBe('{"metadata":{"b":2}}');
    const replaced = await ask("/threads", { method: "POST", body, ask: "replace" });
    expect(JSON.parse(replaced.text)).toMatchObject({ metadata: { by: "app" } });
    const large = await ask("/threads", { method: "POST", body });
    expect(JSON.parse(large.text)).toMatchObject(JSON.parse(body) as object);
  });

  test("may change the API's answers", async () => {
    const { thread_id: threadId } = await client.threads.create();
    const upper = await ask(`/threads/${threadId}`, { ask: "upper" });
    expect(upper.text).toContain('"THREAD_ID"');
    const dropped = await ask(`/threads/${threadId}`, { ask: "drop" });
    expect([dropped.status, dropped.text]).toEqual([418, "instead"]);
    const looked = await ask(`/threads/${threadId}`, { ask: "look" });
    expect(looked.text).toContain(threadId);
    expect(Number(looked.headers.get("x-size"))).toBe(looked.text.length);
  });

  test("passes tokens on one by one, changed or not, on both wires", async () => {
    for (const asked of [undefined, "upper", "drop"]) {
      const controller = new AbortController();
      const answer = await fetch(`${server.url}/runs/stream`, {
        method: "POST",
        headers: { ...JSON_BODY, ...(asked === undefined ? {} : { "x-ask": asked }) },
        body: JSON.stringify({
          assistant_id: "sleep",
          input: { messages: [], milliseconds: 60_000 },
          stream_mode: "custom",
          on_disconnect: "cancel",
        }),
        signal: controller.signal,
      });
      if (asked === "drop") {
        expect([answer.status, await answer.text()]).toEqual([418, "instead"]);
        continue;
      }
      expect(answer.headers.get("content-type")).toBe("text/event-stream");
      expect(answer.headers.get("content-location")).toMatch(/\/runs\//);
      expect(answer.headers.get("x-own")).toBe("200");
      let text = "";
      // The run continues for a minute, so these tokens arrived before its end.
      for await (const chunk of answer.body as unknown as AsyncIterable<Uint8Array>) {
        text += new TextDecoder().decode(chunk);
        if ((text.match(/data:/gi) ?? []).length > 3) break;
      }
      expect(text).toContain(asked === "upper" ? "EVENT: METADATA" : "event: metadata");
      controller.abort();
    }
    const { thread_id: threadId } = await client.threads.create();
    const events = [];
    for await (const event of client.runs.stream(threadId, "two-step", {
      input: { messages: [] },
      streamMode: "updates",
    }))
      events.push(event.event);
    expect(events).toEqual(["metadata", "updates", "updates"]);
    const values = await client.runs.wait(threadId, "two-step", { input: { messages: [] } });
    expect(values).toHaveProperty("messages");
  });

  test("a disconnected client ends its requests in the application and in the API", async () => {
    const controller = new AbortController();
    const ticks = await fetch(`${server.url}/ticks`, { signal: controller.signal });
    for await (const chunk of ticks.body as unknown as AsyncIterable<Uint8Array>) {
      if (new TextDecoder().decode(chunk).includes("data: 3")) break;
    }
    controller.abort();
    await hasLeft;
    const never = new AbortController();
    const waiting = fetch(`${server.url}/never`, { signal: never.signal }).catch(() => undefined);
    await expect.poll(() => seen.includes("GET /never")).toBe(true);
    never.abort();
    await waiting;
    await expect.poll(() => seen.includes("left")).toBe(true);
  });

  test("a client that disconnects before its answer causes no error of the application", async () => {
    const leaving = new AbortController();
    const { thread_id: threadId } = await client.threads.create();
    const before = seen.length;
    const holder = new pg.Client({ connectionString: server.connectionString });
    await holder.connect();
    onTestFinished(() => holder.end());
    await holder.query("begin; lock table threadloom.threads");
    const waiting = fetch(`${server.url}/threads/${threadId}`, { signal: leaving.signal }).catch(
      () => undefined,
    );
    await expect.poll(() => seen.slice(before).join()).toContain(`/threads/${threadId}`);
    leaving.abort();
    await waiting;
    await expect.poll(() => server.lines.join("\n")).toContain("a caller has left the application");
    await holder.query("rollback");
    const faults = server.lines.filter(
      (line) => line.includes("CallerGoneError") && /"level":[45]0/.test(line),
    );
    expect(faults).toEqual([]);
  });

  test("a long answer through it adds few listeners to its response", async () => {
    const warnings: string[] = [];
    const receive = (warning: Error): void => void warnings.push(warning.name);
    process.on("warning", receive);
    const state = {
      values: { messages: [{ role: "user", content: "x".repeat(700_000) }] },
      as_node: "first",
    };
    const { thread_id: threadId } = await client.threads.create({ graphId: "two-step" });
    for (let index = 0; index < 4; index += 1)
      expect(
        (await ask(`/threads/${threadId}/state`, { method: "POST", body: JSON.stringify(state) })).status,
      ).toBe(200);
    const history = await ask(`/threads/${threadId}/history`, { method: "POST", body: "{}" });
    process.off("warning", receive);
    expect([history.status, history.text.length > 3_000_000]).toEqual([200, true]);
    expect(warnings).toEqual([]);
  });

  test("accepts uploads as they arrive, up to the server's limit", async () => {
    const upload = await ask("/upload", { method: "POST", body: "x".repeat(1_000_000) });
    expect(JSON.parse(upload.text)).toEqual({ bytes: 1_000_000 });
    const named = await ask("/upload", { method: "POST", body: "x".repeat(5_000_000) });
    expect(named.status).toBe(413);
    const { hostname, port } = new URL(server.url);
    const status = await new Promise((resolve, reject) => {
      const sending = nodeRequest({ hostname, port, path: "/upload", method: "POST" }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      });
      sending.on("error", reject);
      for (let part = 0; part < 50; part += 1) sending.write(Buffer.alloc(100_000));
      sending.end();
    });
    expect(status).toBe(413);
  });

  test.each(["/thre%61ds/search", "/threads/search/", "/threads/%73earch"])(
    "its guard of a path applies in any spelling: %s",
    async (path) => {
      const answer = await ask(path, { method: "POST", body: "{}", headers: { "x-guarded": "1" } });
      expect([answer.status, answer.text]).toEqual([403, "guarded"]);
      expect((await ask(path, { method: "POST", body: "{}" })).status).toBe(200);
    },
  );

  test.each(["/assistants/%2e%2e", "/assistants/%2E", "/assistants/..%2f/schemas"])(
    "a path with two possible readings is refused: %s",
    async (path) => {
      const { hostname, port } = new URL(server.url);
      const status = await new Promise((resolve, reject) => {
        nodeRequest({ hostname, port, path }, (answer) => resolve(answer.resume().statusCode))
          .on("error", reject)
          .end();
      });
      expect(status).toBe(404);
    },
  );

  const open = (headers: Record<string, string>): Promise<number> =>
    new Promise((resolve) => {
      const address = `${server.url.replace("http", "ws")}/threads/${newId()}/stream/events`;
      const socket = new WebSocket(address, { headers });
      socket.once("unexpected-response", (_request, { statusCode }) => resolve(statusCode ?? 0));
      socket.once("error", () => undefined);
      socket.once("open", () => {
        socket.terminate();
        resolve(101);
      });
    });

  test("may refuse a WebSocket", async () => {
    expect(await open({})).toBe(101);
    expect(await open({ "x-ask": "refuse" })).toBe(403);
    expect(await open({ "x-ask": "throw" })).toBe(500);
    expect(await open({ "x-guarded": "1" })).toBe(403);
  });
});

describe("access to the routes of an application", () => {
  const KEY = "a-key-of-sixteen-characters";
  const app = appAt("app.ts:app");
  test.each([
    [{}, [200, 200, 401, 403]],
    [{ middleware_order: "auth_first" }, [200, 200, 401, 401]],
    [{ enable_custom_route_auth: true }, [401, 200, 401, 401]],
  ])("with %j", async (more, statuses) => {
    const server = await startTestServer({ projectKeys: { http: { app, ...more } }, apiKeys: [KEY] });
    try {
      const status = async (path: string, headers: Record<string, string> = {}): Promise<number> => {
        const answer = await fetch(`${server.url}${path}`, { headers });
        await answer.arrayBuffer();
        return answer.status;
      };
      const asked = ["/hello/Ann", "/info", `/threads/${newId()}`];
      const without = [];
      for (const path of asked) without.push(await status(path));
      // Its middleware refuses unknown callers only if it is called before the authentication.
      without.push(await status(`/threads/${newId()}`, { "x-ask": "refuse" }));
      expect(without).toEqual(statuses);
      expect(await status(`/threads/${newId()}`, { "x-api-key": KEY })).toBe(404);
      const known = await fetch(`${server.url}/hello/Ann`, { headers: { "x-api-key": KEY } });
      const { user } = (await known.json()) as { user: string | null };
      expect(user === null).toBe(!("enable_custom_route_auth" in more));
      expect(await status("/ok")).toBe(200);
      expect(await status("/nope")).toBe(401);
    } finally {
      await server.close();
    }
  });
});

describe("an application without Hono", () => {
  test("leaves its 404s to the API, unless the API has no such route either", async () => {
    const server = await startTestServer({
      projectKeys: { http: { app: appAt("plain.ts"), mount_prefix: "/all" } },
    });
    try {
      const get = async (path: string, init?: RequestInit) => {
        const answer = await fetch(`${server.url}${path}`, init);
        return [answer.status, await answer.text()];
      };
      expect(await get("/mine")).toEqual([200, '{"mine":true}']);
      expect(await get("/files/none")).toEqual([404, "no such file"]);
      expect((await get("/info"))[0]).toBe(200);
      expect((await get("/nothing"))[0]).toBe(500);
      expect((await get("/assistants/search", { method: "POST", body: "{}" }))[0]).toBe(500);
      // It may not ask the API for another path.
      expect((await get("/moved"))[0]).toBe(500);
      const [status, body] = await get("/threads", { method: "POST", body: '{"metadata": {"a": 1}}' });
      expect([status, JSON.parse(String(body))]).toMatchObject([200, { metadata: { a: 1 } }]);
      const client = new Client({ apiUrl: server.url, apiKey: null });
      const events = [];
      for await (const { event } of client.runs.stream(null, "two-step", {
        input: { messages: [] },
        streamMode: "updates",
      }))
        events.push(event);
      expect(events).toEqual(["metadata", "updates", "updates"]);
    } finally {
      await server.close();
    }
  });

  test.each([
    ["plain.ts:notAnApp", "its export 'notAnApp' is not an application: it has no method 'fetch'"],
    ["plain.ts:nothing", "has no export 'nothing': it exports 'default', 'notAnApp'"],
    ["nowhere.ts:app", "nowhere.ts does not exist"],
  ])("or a missing one prevents the start, with the reason: %s", async (reference, message) => {
    await expect(startTestServer({ projectKeys: { http: { app: appAt(reference) } } })).rejects.toThrow(
      message,
    );
  });
});
