import { request as send } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allowedOrigins, createSiteCheck } from "../../src/http/sites.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { listeningLogger } from "../helpers/parts.ts";

const STUDIO = "https://smith.langchain.com";
const EVIL = "https://evil.example";

interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

/** `node:http` lets a test set any Host and any Sec-Fetch-Site. */
const ask = async (
  { url }: TestServer,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: string,
): Promise<Answer> =>
  await new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const request = send({ hostname, port, method, path, headers }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      answer.on("end", () => resolve({ status: answer.statusCode!, headers: answer.headers, body: text }));
    });
    request.on("error", reject);
    request.end(body);
  });

const threadCount = async (server: TestServer): Promise<number> =>
  Number((await ask(server, "POST", "/threads/count")).body);

describe("without API keys", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer({ corsAllowOrigins: ["loopback", STUDIO] });
  });
  afterAll(async () => {
    await server.close();
  });

  test.each([
    ["text/plain, which needs no preflight", { origin: EVIL, "content-type": "text/plain" }],
    ["JSON", { origin: EVIL, "content-type": "application/json" }],
    ["a page in a sandbox", { origin: "null" }],
    ["a page that only resembles the server's", { origin: "http://localhost.evil.example" }],
    ["a page on a name that begins like loopback", { origin: "http://127.0.0.1.evil.example:8123" }],
    ["a form that hides where it comes from", { "sec-fetch-site": "cross-site" }],
  ])("a page of another site can't change anything: %s", async (_name, headers) => {
    const before = await threadCount(server);
    const answer = await ask(server, "POST", "/threads", headers as Record<string, string>, "{}");
    expect(answer.status).toBe(403);
    expect(JSON.parse(answer.body)).toEqual({ detail: expect.stringContaining("CORS_ALLOW_ORIGINS") });
    expect(answer.headers).not.toHaveProperty("access-control-allow-origin");
    expect(await threadCount(server)).toBe(before);
  });

  test("a page of another site can't read by a request that browsers send without a preflight", async () => {
    const image = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image" };
    expect((await ask(server, "GET", "/info", image)).status).toBe(403);
    const frame = {
      "sec-fetch-site": "cross-site",
      "sec-fetch-mode": "navigate",
      "sec-fetch-dest": "iframe",
    };
    expect((await ask(server, "GET", "/docs/", frame)).status).toBe(403);
  });

  test("a page of another site has its preflight refused", async () => {
    const asked = { origin: EVIL, "access-control-request-method": "POST" };
    const answer = await ask(server, "OPTIONS", "/threads", {
      ...asked,
      "access-control-request-private-network": "true",
    });
    expect(answer.status).toBe(403);
    expect(Object.keys(answer.headers).filter((name) => name.startsWith("access-control-allow"))).toEqual([]);
  });

  test("a link to the documentation works", async () => {
    const link = {
      "sec-fetch-site": "cross-site",
      "sec-fetch-mode": "navigate",
      "sec-fetch-dest": "document",
    };
    expect((await ask(server, "GET", "/openapi.json", link)).status).toBe(200);
    expect((await ask(server, "POST", "/threads", link, "{}")).status).toBe(403);
  });

  test.each([
    ["http://localhost:3000"],
    ["http://app.localhost:5173"],
    ["http://127.0.0.1:8123"],
    ["http://[::1]:3000"],
    ["https://localhost"],
    [STUDIO],
  ])("a front end on this machine and a configured one work: %s", async (origin) => {
    const headers = { origin, "sec-fetch-site": "cross-site", "content-type": "text/plain;charset=UTF-8" };
    const preflight = await ask(server, "OPTIONS", "/threads", {
      origin,
      "access-control-request-method": "POST",
      "access-control-request-headers": "content-type,x-auth-scheme",
      "access-control-request-private-network": "true",
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers).toMatchObject({
      "access-control-allow-origin": origin,
      "access-control-allow-headers": "content-type,x-auth-scheme",
      "access-control-allow-private-network": "true",
    });
    const answer = await ask(server, "POST", "/threads", headers, "{}");
    expect(answer.status).toBe(200);
    expect(answer.headers["access-control-allow-origin"]).toBe(origin);
    expect(answer.headers["access-control-expose-headers"]).toContain("Content-Location");
  });

  test("a client that is not a browser sends no origin and is served", async () => {
    expect((await ask(server, "POST", "/threads", {}, "{}")).status).toBe(200);
    expect((await ask(server, "POST", "/threads", { "sec-fetch-mode": "cors" }, "{}")).status).toBe(200);
    expect((await ask(server, "GET", "/info", { "sec-fetch-site": "none" })).status).toBe(200);
  });

  test.each([["evil.example"], ["evil.example:8123"], ["127.0.0.1.evil.example"], ["192.168.1.5"], ["a b"]])(
    "a foreign host name is refused, whatever it resolves to: %s",
    async (host) => {
      for (const [method, path] of [
        ["GET", "/info"],
        ["POST", "/threads"],
        ["OPTIONS", "/threads"],
        ["GET", "/nope"],
      ] as const) {
        const answer = await ask(server, method, path, { host, origin: `http://${host.split(":")[0]}` });
        expect([method, path, answer.status]).toEqual([method, path, 403]);
        expect(JSON.parse(answer.body)).toEqual({ detail: expect.stringContaining("ALLOWED_HOSTS") });
      }
    },
  );

  test.each([
    ["localhost"],
    ["LOCALHOST:8123"],
    ["my.localhost"],
    ["127.0.0.1"],
    ["127.8.9.1:80"],
    ["[::1]:8123"],
  ])("a loopback name is accepted: %s", async (host) => {
    expect((await ask(server, "GET", "/info", { host })).status).toBe(200);
  });

  test("health probes are answered under any name", async () => {
    expect((await ask(server, "GET", "/ok", { host: "evil.example", origin: EVIL })).status).toBe(200);
  });
});

test("without API keys, a server beyond loopback accepts addresses, machine names and configured names", async () => {
  const server = await startTestServer({
    host: "0.0.0.0",
    unsafeNoAuth: true,
    corsAllowOrigins: ["loopback"],
    allowedHosts: ["api.example", ".internal.example"],
  });
  try {
    const statusFor = async (host: string, headers: Record<string, string> = {}) =>
      (await ask(server, "POST", "/threads", { host, ...headers }, "{}")).status;
    for (const host of [
      "192.168.1.5:8123",
      "[fd00::5]:8123",
      "threadloom:8123",
      "API.example",
      "a.b.internal.example",
    ]) {
      expect([host, await statusFor(host)]).toEqual([host, 200]);
    }
    for (const host of ["evil.example", "api.example.evil.example", "xinternal.example"]) {
      expect([host, await statusFor(host)]).toEqual([host, 403]);
    }
    // The page that this server itself serves.
    expect(await statusFor("192.168.1.5:8123", { origin: "http://192.168.1.5:8123" })).toBe(200);
    expect(await statusFor("192.168.1.5:8123", { origin: "http://192.168.1.6:8123" })).toBe(403);
  } finally {
    await server.close();
  }
});

test("refusals are logged, because browsers hide the answer from the page's author: once each, up to a maximum", () => {
  const { logger, lines } = listeningLogger();
  const origins = allowedOrigins(["loopback"]);
  const { assertFromHere } = createSiteCheck({
    origins,
    host: "127.0.0.1",
    allowedHosts: [],
    hasKeys: () => false,
    logger,
  });
  const ask = (headers: Record<string, string>) => () =>
    assertFromHere({ method: "POST", isProbe: false, headers: { host: "localhost", ...headers } });
  for (let time = 0; time < 3; time++) {
    expect(ask({ origin: STUDIO })).toThrow();
    expect(ask({ host: "agents.example" })).toThrow();
    expect(ask({ origin: "http://localhost:3000" })).not.toThrow();
  }
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { level: 40, msg: "a request was refused", text: expect.stringContaining(`'${STUDIO}'`) },
    { level: 40, msg: "a request was refused", text: expect.stringContaining("'agents.example'") },
  ]);
  for (let page = 0; page < 1_000; page++) expect(ask({ origin: `https://${page}.example` })).toThrow();
  expect(lines.length).toBeLessThan(50);
});

test("an IPv6 loopback address to listen on counts as loopback, too", () => {
  const origins = allowedOrigins(["loopback"]);
  const { assertFromHere } = createSiteCheck({
    origins,
    host: "::1",
    allowedHosts: ["FD00::5"],
    hasKeys: () => false,
    logger: listeningLogger().logger,
  });
  const from = (host: string) => () => assertFromHere({ method: "GET", isProbe: false, headers: { host } });
  for (const host of ["[::1]:8123", "localhost", "[fd00::5]"]) expect(from(host)).not.toThrow();
  for (const host of ["threadloom", "[fd00::6]", "192.168.1.5"]) expect(from(host)).toThrow("ALLOWED_HOSTS");
});

test("with API keys every name and page is answered, because access requires the key", async () => {
  const server = await startTestServer({ apiKeys: ["the-key"], corsAllowOrigins: ["*"] });
  try {
    const headers = { host: "agents.example", origin: EVIL };
    expect((await ask(server, "POST", "/threads", headers, "{}")).status).toBe(401);
    const answer = await ask(server, "POST", "/threads", { ...headers, "x-api-key": "the-key" }, "{}");
    expect([answer.status, answer.headers["access-control-allow-origin"]]).toEqual([200, "*"]);
  } finally {
    await server.close();
  }
});
