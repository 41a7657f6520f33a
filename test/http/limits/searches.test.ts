import { afterAll, beforeAll, expect, test } from "vitest";
import { MISSING, ROUTES } from "../../access/route-table.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";

/** The class of each route that searches many records, over the table of all routes, so a new one is not forgotten. */

const KEY = "a-key-of-the-operator";
const SEARCHES = 77_777;
const LOOKS_THROUGH = /^POST \S*\/(search|count|history|namespaces|versions|checkpoint)$/;

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ apiKeys: [KEY], keyFactor: 1, searchesPerMinute: SEARCHES });
});
afterAll(async () => {
  await server.close();
});

const routes = Object.entries(ROUTES).filter(([route]) => LOOKS_THROUGH.test(route));

test("the table contains all routes that search, count or list", () => {
  expect(routes.length).toBeGreaterThan(10);
});

test.each(routes)("%s is a search", async (route, { body }) => {
  const [method = "", path = ""] = route.split(" ");
  const answer = await fetch(`${server.url}${path.replace(/:\w+/g, MISSING)}`, {
    method,
    headers: { "x-api-key": KEY, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  await answer.arrayBuffer();
  expect(answer.headers.get("ratelimit-limit")).toBe(String(SEARCHES));
});
