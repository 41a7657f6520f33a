import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createAuthorize, type Authorize } from "../../src/access/authorize.ts";
import type { Caller } from "../../src/access/caller.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { missingPath, ROUTES } from "./route-table.ts";

/** Fastify prints a wildcard below the route that it branches off from, without the part between them. */
const PRINTED_OTHERWISE = new Map([
  ["/docs*", "/docs/static/*"],
  ["/console*", "/console/*"],
]);

/** The routes of Fastify's tree: a line continues the path of its parent, and lists its methods. */
const routesOf = (tree: string): string[] => {
  const above: string[] = [];
  return tree.split("\n").flatMap((line) => {
    const [, indent, label, methods = ""] = /^([│ ]*)[├└]── (\S+)(?: \(([A-Z, ]+)\))?/.exec(line) ?? [];
    if (indent === undefined || label === undefined) return [];
    const depth = indent.length / 4;
    above.splice(depth, above.length, label);
    const path = above.join("");
    return methods
      .split(", ")
      .filter((method) => method !== "" && method !== "HEAD")
      .map((method) => `${method} ${PRINTED_OTHERWISE.get(path) ?? path}`);
  });
};

const KEY = "canary-2c6b-the-key";
const everything = createAuthorize();
let asked: string[] = [];
let callers: Caller[] = [];
const authorize: Authorize = async (caller, resource, action, value) => {
  if (caller.kind !== "server") {
    asked.push(`${resource}:${action}`);
    callers.push(caller);
  }
  return await everything(caller, resource, action, value);
};

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ apiKeys: [KEY], authorize });
});
afterAll(async () => {
  await server.close();
});
beforeEach(() => {
  asked = [];
  callers = [];
});

test("every route has a line in the table, and no line is left over", () => {
  const routes = routesOf(server.app.printRoutes({ commonPrefix: false }));
  expect(routes.length).toBeGreaterThan(50);
  expect(routes.toSorted()).toEqual(Object.keys(ROUTES).toSorted());
});

test.each(Object.entries(ROUTES).filter(([route]) => !route.startsWith("OPTIONS")))(
  "%s authorizes each of its events, with the caller of the request",
  async (route, { events, body, query = "", isEndless = false }) => {
    const [method = "", path = ""] = route.split(" ");
    const answer = await fetch(`${server.url}${missingPath(path)}${query}`, {
      method,
      redirect: "manual",
      headers: { "x-api-key": KEY, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    await (isEndless ? answer.body?.cancel() : answer.arrayBuffer());
    expect([200, 204, 302, 404, 405]).toContain(answer.status);
    expect([...new Set(asked)].toSorted()).toEqual(events.toSorted());
    for (const caller of callers)
      expect(caller).toMatchObject({ kind: "key", id: expect.stringMatching(/^[0-9a-f]{12}$/) });
  },
);
