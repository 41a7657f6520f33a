import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream as WebStream } from "node:stream/web";
import { fileURLToPath } from "node:url";
import { Client } from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { createApp as createExpress } from "../../examples/proxy/express-app.ts";
import { createApp as createFastify } from "../../examples/proxy/fastify-app.ts";
import * as route from "../../examples/proxy/nextjs-route.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { eventually } from "../helpers/conditions.ts";
import { openStream } from "../helpers/server-sent-events.ts";
import { temporaryFolder, type TemporaryFolder } from "../helpers/temporary-folder.ts";

/** The guides for Express, Next.js and Fastify: each example in front of a whole server, with the official client. */

const path = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const OPERATOR = "a-key-of-the-operator-of-32-bytes";
const LONG_MS = 600_000;

interface FrontEnd {
  /** The address of the API, below the front end. */
  url: string;
  close(): Promise<void>;
}

const addressOf = (server: Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const closing = async (server: Server): Promise<void> => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
};

/** Passes Node's requests to a route handler like Next.js: as a `Request` whose signal reports a disconnected client. */
const asRouteHandler = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const left = new AbortController();
  response.on("close", () => left.abort());
  const method = (request.method ?? "GET") as keyof typeof route & ("GET" | "POST");
  const hasBody = method !== ("GET" as string) && method !== ("HEAD" as string);
  const answer = await route[method](
    new Request(`http://${request.headers.host}${request.url}`, {
      method,
      headers: request.headers as Record<string, string>,
      signal: left.signal,
      ...(hasBody && { body: Readable.toWeb(request), duplex: "half" }),
    } as RequestInit),
  );
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (answer.body === null) response.end();
  else await pipeline(Readable.fromWeb(answer.body as WebStream), response);
};

const FRONT_ENDS: Readonly<Record<string, (target: string) => Promise<FrontEnd>>> = {
  async Express(target) {
    const server = createExpress(target).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    return { url: `${addressOf(server)}/agents`, close: () => closing(server) };
  },
  async Fastify(target) {
    const app = await createFastify(target);
    const url = await app.listen({ host: "127.0.0.1", port: 0 });
    return {
      url: `${url}/agents`,
      close: async () => {
        app.server.closeAllConnections();
        await app.close();
      },
    };
  },
  async "Next.js (its route handler, on Node)"(target) {
    vi.stubEnv("THREADLOOM_URL", target);
    const server = createServer((request, response) => {
      // Rejects when the client has disconnected.
      asRouteHandler(request, response).catch(() => response.destroy());
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return { url: `${addressOf(server)}/api/agents`, close: () => closing(server) };
  },
};

let folder: TemporaryFolder;
let server: TestServer;
beforeAll(async () => {
  folder = await temporaryFolder();
  vi.stubEnv("JWT_AUDIENCE", "threadloom");
  vi.stubEnv("JWT_SECRET", "a-secret-of-more-than-thirty-two-bytes");
  const graphConfigFile = join(folder.path, "langgraph.json");
  const graphs = {
    agent: path("graphs/agent.ts:graph"),
    sleep: path("test/fixtures/sleep.ts:graph"),
  };
  const auth = { path: path("examples/auth/jwt-team.ts:auth") };
  await writeFile(graphConfigFile, JSON.stringify({ graphs, auth }));
  server = await startTestServer({ graphConfigFile, apiKeys: [OPERATOR] });
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await server?.close();
  await folder?.remove();
});

describe.each(Object.entries(FRONT_ENDS))("%s in front of the server", (_name, start) => {
  let front: FrontEnd;
  beforeAll(async () => {
    front = await start(server.url);
  });
  afterAll(() => front?.close());

  const cookie = (name: string) => ({ cookie: `theme=dark; session=${name}-session` });
  const clientOf = (name: string): Client =>
    new Client({
      apiUrl: front.url,
      apiKey: null,
      defaultHeaders: cookie(name),
      callerOptions: { maxRetries: 0 },
    });
  const operator = (): Client => new Client({ apiUrl: server.url, apiKey: OPERATOR });

  test("gives each signed-in user access to the records of their team", async () => {
    const [alice, rob, bob] = [clientOf("alice"), clientOf("rob"), clientOf("bob")];
    const name = "ä".repeat(50_000);
    const { thread_id, metadata } = await alice.threads.create({ metadata: { name } });
    expect(metadata).toEqual({ name, team: "red" });
    expect((await rob.threads.get(thread_id)).metadata).toMatchObject({ team: "red" });
    await expect(bob.threads.get(thread_id)).rejects.toThrow(/404/);
    await expect(rob.threads.create()).rejects.toThrow(/403/);
    const answer = await fetch(`${front.url}/threads/${thread_id}?include=ttl`, { headers: cookie("bob") });
    expect([answer.status, await answer.json()]).toEqual([404, { detail: expect.any(String) as string }]);
  });

  test("asks strangers to sign in, and forwards no key, token or origin of the browser", async () => {
    const foreign = {
      "x-api-key": OPERATOR,
      authorization: `Bearer ${OPERATOR}`,
      origin: "https://chat.example",
    };
    const strangers: Record<string, string>[] = [{}, foreign, { cookie: "session=nobody" }];
    for (const headers of strangers)
      expect((await fetch(`${front.url}/threads/search`, { method: "POST", headers })).status).toBe(401);
    const elsewhere = { ...cookie("alice"), "sec-fetch-site": "cross-site" };
    const forged = await fetch(`${front.url}/threads/search`, { method: "POST", headers: elsewhere });
    expect(forged.status).toBe(403);
    // With the key all threads would be found, including those of the other team.
    await clientOf("alice").threads.create();
    const found = await fetch(`${front.url}/threads/search`, {
      method: "POST",
      headers: { "content-type": "application/json", ...foreign, ...cookie("bob") },
      body: '{"limit":100}',
    });
    expect([found.status, await found.json()]).toEqual([200, []]);
  });

  test("streams each event when it arrives, and cancels the run of a disconnected client if requested", async () => {
    const { thread_id } = await clientOf("alice").threads.create();
    const stream = await openStream(`${front.url}/threads/${thread_id}/runs/stream`, {
      headers: cookie("alice"),
      body: {
        assistant_id: "sleep",
        input: { messages: [], milliseconds: LONG_MS },
        stream_mode: "custom",
        on_disconnect: "cancel",
      },
    });
    expect(stream.headers.get("content-type")).toMatch(/^text\/event-stream/);
    const { run_id } = (await stream.next())?.data as { run_id: string };
    expect(stream.headers.get("content-location")).toBe(`/threads/${thread_id}/runs/${run_id}`);
    // The run sleeps for ten minutes, so these events arrived before its end.
    await stream.until(({ data }) => (data as { tick?: number }).tick === 2);
    expect((await operator().runs.get(thread_id, run_id)).status).toBe("running");
    stream.close();
    await eventually("the run to be cancelled", async () => {
      const { status } = await operator().runs.get(thread_id, run_id);
      return status === "interrupted";
    });
  });

  test("ends a run whose waiting client has disconnected, and leaks no listener", async () => {
    const warnings: Error[] = [];
    const warned = (warning: Error): unknown => warnings.push(warning);
    process.on("warning", warned);
    onTestFinished(() => void process.off("warning", warned));
    const { thread_id } = await clientOf("alice").threads.create();
    const leaving = new AbortController();
    const waiting = fetch(`${front.url}/threads/${thread_id}/runs/wait`, {
      method: "POST",
      headers: { "content-type": "application/json", ...cookie("alice") },
      body: JSON.stringify({
        assistant_id: "sleep",
        input: { messages: [], milliseconds: LONG_MS },
        on_disconnect: "cancel",
      }),
      signal: leaving.signal,
    }).catch(() => undefined);
    const status = async () => (await operator().runs.list(thread_id))[0]?.status;
    await eventually("the run to run", async () => (await status()) === "running");
    leaving.abort();
    await waiting;
    await eventually("the run to be cancelled", async () => (await status()) === "interrupted");
    expect(warnings).toEqual([]);
  });

  test("joins a run again from the last event of its reader", async () => {
    const alice = clientOf("alice");
    const { thread_id } = await alice.threads.create();
    let made: { run_id: string } | undefined;
    const seen: string[] = [];
    for await (const { id, event } of alice.runs.stream(thread_id, "agent", {
      input: { messages: [{ role: "user", content: "What is 6 * 7?" }] },
      streamMode: "updates",
      streamResumable: true,
      onRunCreated: (run) => (made = run),
    }))
      seen.push(`${id} ${event}`);
    expect(seen.length).toBeGreaterThan(2);
    const again: string[] = [];
    for await (const { id, event } of alice.runs.joinStream(thread_id, made?.run_id ?? "", {
      lastEventId: seen[0]?.split(" ")[0] ?? "",
      streamMode: "updates",
    }))
      again.push(`${id} ${event}`);
    expect(again).toEqual(seen.slice(1));
  });
});

test("a path of the route handler can't name another host", async () => {
  let asked = "";
  const fetching = vi.spyOn(globalThis, "fetch").mockImplementation(async (input) => {
    asked = String(input);
    return new Response("{}");
  });
  try {
    vi.stubEnv("THREADLOOM_URL", "http://agents.internal:8123/v1");
    for (const [given, wanted] of [
      ["/threads?x=1", "/v1/threads?x=1"],
      ["//elsewhere.example/threads", "/v1//elsewhere.example/threads"],
      // The URL of the request has already removed these parts.
      ["/../../threads", undefined],
      ["@elsewhere.example/threads", "/v1@elsewhere.example/threads"],
    ] as const) {
      const url = `http://app.example/api/agents${given}`;
      asked = "";
      await route.GET(new Request(url, { headers: { cookie: "session=alice-session" } }));
      expect(new URL(asked).origin).toBe("http://agents.internal:8123");
      if (wanted !== undefined) expect(asked).toBe(`http://agents.internal:8123${wanted}`);
    }
  } finally {
    fetching.mockRestore();
  }
});

test.each([
  ["docs/guides/express.md", "examples/proxy/express-app.ts"],
  ["docs/guides/fastify.md", "examples/proxy/fastify-app.ts"],
  ["docs/guides/nextjs.md", "examples/proxy/nextjs-route.ts"],
  ["docs/guides/agent-token.md", "examples/proxy/agent-token.ts"],
])("%s contains the code of %s", (page, example) => {
  expect(readFileSync(path(page), "utf8")).toContain(
    `\`\`\`ts\n${readFileSync(path(example), "utf8")}\`\`\`\n`,
  );
});
