import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { sendRaw, UPGRADE } from "../../helpers/raw-requests.ts";

/** Request lines that normal clients never send, to an application that guards a part of the API. */

const app = fileURLToPath(new URL("./apps/app.ts:app", import.meta.url));
const GUARDED = { "x-guarded": "1" };

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ projectKeys: { http: { app } }, allowedHosts: ["*"] });
});
afterAll(async () => {
  // A stranger's request causes no server error.
  expect(server.lines.filter((line) => line.includes("a request failed"))).toEqual([]);
  await server.close();
});

const search = async (target: string, headers: Record<string, string> = {}) =>
  await sendRaw(server.url, `POST ${target}`, {
    body: "{}",
    headers: { "content-type": "application/json", ...headers },
  });

describe("a request with an absolute address", () => {
  test.each([
    "http://a/threads/search",
    "http://a:80/threads/search?limit=1",
    "HTTP://A/threads/search",
    "https://a/threads/search/",
    "http://[::1]:1/thre%61ds/search",
    "http://a:99999/threads/search",
  ])("reaches its path, also for a guard of that path: %s", async (target) => {
    for (const host of ["localhost", "localhost:8123", "a", "1.2.3.256"]) {
      const refused = await search(target, { ...GUARDED, host });
      expect([refused.status, refused.body.includes("guarded")]).toEqual([403, true]);
      const passed = await search(target, { host });
      expect([passed.status, passed.head.includes("x-guard: passed")]).toEqual([200, true]);
    }
  });

  test("reaches the root if it has no path", async () => {
    expect((await sendRaw(server.url, "GET http://a?x=1")).head).toContain("location: /docs");
  });

  test("opens a WebSocket past the guard no more than any other", async () => {
    const target = `GET http://a/threads/${newId()}/stream/events`;
    expect((await sendRaw(server.url, target, { headers: UPGRADE })).status).toBe(101);
    expect((await sendRaw(server.url, target, { headers: { ...UPGRADE, ...GUARDED } })).status).toBe(403);
  });
});

describe("an invalid path", () => {
  test.each([
    "*",
    "ftp://a/threads/search",
    "http:///threads/search",
    "http://me:secret@a/threads/search",
    "/threads/search#",
    "/threads/search#/../x",
    "?threads",
    "threads/search",
    "\\threads/search",
  ])("causes a 400, without authentication: %s", async (target) => {
    const answer = await search(target);
    expect([answer.status, answer.head.includes("x-own")]).toEqual([400, false]);
    const socket = await sendRaw(server.url, `GET ${target}`, { headers: UPGRADE });
    expect(socket.status).toBe(400);
  });

  test("does not include `*`, which stands for the whole server", async () => {
    expect((await sendRaw(server.url, "OPTIONS *")).status).toBe(204);
  });
});

describe("a path with two possible readings", () => {
  test.each([
    ["//a/threads/search", 404],
    ["//threads/search", 404],
    ["/./threads/search", 404],
    ["/%2e/threads/search", 404],
    ["/x/../threads/search", 404],
    ["/x/%2E%2e/threads/search", 404],
    ["/threads/%2e/search", 404],
    ["/threads\\search", 404],
    ["/\\threads/search", 404],
    ["/\\a/threads/search", 404],
    ["/threads//search", 404],
    ["/thre%61ds/search", 200],
    ["/threads/search/", 200],
    ["/threads/search?x=http://b/", 200],
  ])("reaches the API in one reading, and never past the guard: %s", async (target, status) => {
    expect((await search(target)).status).toBe(status);
    const refused = await search(target, GUARDED);
    expect(refused.status).toBe(refused.body.includes("guarded") ? 403 : 404);
  });

  test.each(["//a/threads/{}/stream/events", "/./threads/{}/stream/events", "/threads/{}\\stream/events"])(
    "opens no WebSocket: %s",
    async (target) => {
      const answer = await sendRaw(server.url, `GET ${target.replace("{}", newId())}`, { headers: UPGRADE });
      expect(answer.status).toBe(404);
    },
  );
});

test("a server without keys checks the name in the address, and not the one in Host", async () => {
  const local = await startTestServer();
  try {
    const answer = await sendRaw(local.url, "GET http://evil.example/info");
    expect([answer.status, answer.body.includes("evil.example")]).toEqual([403, true]);
  } finally {
    await local.close();
  }
});

test("below a prefix the same holds, and paths outside stay outside", async () => {
  const http = { app, mount_prefix: "/all" };
  const prefixed = await startTestServer({ projectKeys: { http }, allowedHosts: ["*"] });
  try {
    const ask = async (target: string, headers = {}) =>
      (await sendRaw(prefixed.url, `GET ${target}`, { headers })).status;
    const thread = `/threads/${newId()}`;
    expect(await ask(`http://a/all${thread}`)).toBe(404);
    expect(await ask(`http://a/all${thread}`, GUARDED)).toBe(403);
    expect(await ask(`http://a${thread}`, GUARDED)).toBe(404);
    expect(await ask("http://a/ok")).toBe(200);
    expect(await ask("/all/threads#")).toBe(400);
  } finally {
    await prefixed.close();
  }
});
