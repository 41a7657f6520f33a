import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestServer, type TestServer } from "../helpers/app.ts";

const KEY = "canary-1f0d-the-key";
const WRONG = "canary-7d3a-wrong-key";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ apiKeys: [KEY] });
});
afterAll(async () => {
  await server.close();
});

/** Every route of the server as it stands: a new room is covered without a word here. */
const everyRoute = (): { method: string; path: string }[] => {
  const document = server.app.swagger() as { paths: Record<string, Record<string, unknown>> };
  const described = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => ({
      method: method.toUpperCase(),
      path: path.replace(/\{[^}]+\}/g, "00000000-0000-7000-8000-000000000000"),
    })),
  );
  const further = [
    "/docs",
    "/docs/json",
    "/docs/json/",
    "/docs/yaml",
    "/docs/jsonx",
    "/docs/static/swagger-ui.css",
    "/openapi.json",
    "/nope",
    "/ok/x",
    "//ok",
  ];
  return [...described, ...further.map((path) => ({ method: "GET", path }))];
};

/** Health probes, clients before they sign in, and what a page loads by an address carry no key. The page of the API is empty without one. */
const isOpen = (method: string, path: string): boolean =>
  ["/ok", "/info"].includes(path) || (method === "GET" && /^\/ui\/|^\/docs$|^\/docs\/static\//.test(path));

test("without a key every route but open ones is a 401, with a wrong one a 403", async () => {
  const routes = everyRoute();
  expect(routes.length).toBeGreaterThan(15);
  for (const { method, path } of routes) {
    if (isOpen(method, path)) continue;
    const url = `${server.url}${path}`;
    const without = await fetch(url, { method });
    expect([method, path, without.status]).toEqual([method, path, 401]);
    expect(await without.json()).toEqual({
      detail: "This server needs an API key: send it as X-Api-Key or Authorization: Bearer.",
    });
    const wrong = await fetch(url, { method, headers: { "x-api-key": WRONG } });
    expect([method, path, wrong.status]).toEqual([method, path, 403]);
    expect(await wrong.json()).toEqual({ detail: "The API key is not known to this server." });
  }
});

test("no key reaches a log line of the whole server", () => {
  expect(server.lines.filter((line) => line.includes("canary"))).toEqual([]);
});
