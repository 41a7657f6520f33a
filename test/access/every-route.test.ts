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

/** The routes are read from the running server, so new routes are covered automatically. */
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

/**
 * Health probes, clients before they sign in, and assets that a page loads by address carry no key. The API page contains no data without
 * one.
 */
const isOpen = (method: string, path: string): boolean =>
  ["/ok", "/info"].includes(path) || (method === "GET" && /^\/ui\/|^\/docs$|^\/docs\/static\//.test(path));

test("every route that is not open answers 401 without a key, and 403 with a wrong one", async () => {
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

test("no log line of the whole server contains a key", () => {
  expect(server.lines.filter((line) => line.includes("canary"))).toEqual([]);
});
