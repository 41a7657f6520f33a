import { Client } from "@langchain/langgraph-sdk";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { saying } from "../../helpers/api.ts";
import { projectKeysIn } from "../../../src/platform/config/project-keys.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";

/** One project with an `Auth` and an application of its own, below a prefix, in each order of the two. */

const PROJECT = fileURLToPath(new URL("apps/langgraph-users.json", import.meta.url));
const APP = fileURLToPath(new URL("apps/app.ts:app", import.meta.url));
const AUTH = fileURLToPath(new URL("../../access/users/auth.ts:auth", import.meta.url));
const KEY = "a-key-of-the-operator";
const PREFIX = "/agents";
const ALICE = { authorization: "Bearer alice-token" };

type Asked = readonly [status: number, body: unknown];
const ask = async (
  { url }: { url: string },
  path: string,
  init: RequestInit & { headers?: Record<string, string> } = {},
): Promise<Asked> => {
  const answer = await fetch(`${new URL(url).origin}${path}`, init);
  const text = await answer.text();
  return [
    answer.status,
    answer.headers.get("content-type")?.includes("json") === true ? JSON.parse(text) : text,
  ];
};

const REFUSED: Asked = [401, { detail: "Show who you are." }];
const FORBIDDEN: Asked = [403, { detail: "not you" }];

describe.each([
  { order: "middleware_first", routesAsk: false },
  { order: "auth_first", routesAsk: false },
  { order: "middleware_first", routesAsk: true },
  { order: "auth_first", routesAsk: true },
])("with users, $order, and own routes that require a caller: $routesAsk", ({ order, routesAsk }) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer({
      graphConfigFile: PROJECT,
      projectKeys: {
        http: {
          app: APP,
          mount_prefix: PREFIX,
          middleware_order: order,
          enable_custom_route_auth: routesAsk,
        },
      },
      apiKeys: [KEY],
    });
  });
  afterAll(() => server.close());
  const authFirst = order === "auth_first" || routesAsk;

  test("own routes know the user if they require a caller, and are open otherwise", async () => {
    const hello = `${PREFIX}/hello/Ann`;
    const open: Asked = [200, { hello: "Ann", user: null }];
    expect(await ask(server, hello)).toEqual(routesAsk ? REFUSED : open);
    expect(await ask(server, hello, { headers: ALICE })).toEqual(
      routesAsk ? [200, { hello: "Ann", user: "alice" }] : open,
    );
    const withKey = await ask(server, hello, { headers: { "x-api-key": KEY } });
    expect(withKey).toEqual(routesAsk ? [200, { hello: "Ann", user: expect.any(String) }] : open);
  });

  test("a route that knows the user gets all fields of the handler", async () => {
    const [status, body] = await ask(server, `${PREFIX}/whoami`, { headers: ALICE });
    expect([status, body]).toEqual([
      200,
      routesAsk
        ? {
            user: {
              identity: "alice",
              display_name: "alice",
              is_authenticated: true,
              permissions: ["talk"],
              team: "blue",
              email: "alice@canary.example",
            },
            scopes: ["talk"],
          }
        : null,
    ]);
  });

  test("an unknown caller gets a 401 before the application where a caller is required, else the application decides first", async () => {
    const refused = { "x-ask": "refuse" };
    expect(await ask(server, `${PREFIX}/threads/search`, { method: "POST", headers: refused })).toEqual(
      authFirst ? REFUSED : FORBIDDEN,
    );
    expect(
      await ask(server, `${PREFIX}/threads/search`, { method: "POST", headers: { ...refused, ...ALICE } }),
    ).toEqual(FORBIDDEN);
    // The application lets the request through.
    expect(await ask(server, `${PREFIX}/threads/search`, { method: "POST" })).toEqual(REFUSED);
  });

  test("a path outside the prefix causes a 404, and a probe works", async () => {
    expect((await ask(server, "/hello/Ann", { headers: ALICE }))[0]).toBe(404);
    expect((await ask(server, "/threads/search", { method: "POST", headers: ALICE }))[0]).toBe(404);
    expect((await ask(server, "/ok"))[0]).toBe(200);
  });

  test("/docs is below the prefix, open to browsers, and its document requires a caller and names the prefix", async () => {
    const [status, page] = await ask(server, `${PREFIX}/docs/`, { headers: {} });
    expect([status, String(page).includes("swagger")]).toEqual([200, true]);
    expect((await ask(server, `${PREFIX}/openapi.json`))[0]).toBe(401);
    expect(await ask(server, `${PREFIX}/openapi.json`, { headers: ALICE })).toMatchObject([
      200,
      { servers: [{ url: PREFIX }] },
    ]);
  });

  test("the official client works below the prefix, and users see their own records", async () => {
    const clientOf = (name: string): Client =>
      new Client({
        // Its address has the prefix.
        apiUrl: server.url,
        apiKey: null,
        defaultHeaders: { authorization: `Bearer ${name}-token` },
        callerOptions: { maxRetries: 0 },
      });
    const [alice, bob] = [clientOf("alice"), clientOf("bob")];
    const { thread_id: threadId } = await alice.threads.create();
    const events: string[] = [];
    for await (const { event } of alice.runs.stream(threadId, "agent", {
      input: saying("hello"),
      streamMode: "updates",
    }))
      events.push(event);
    expect(events[0]).toBe("metadata");
    expect(events).toContain("updates");
    await expect(bob.threads.get(threadId)).rejects.toThrow("404");
    expect(await bob.threads.search()).toEqual([]);
    expect(await alice.threads.search()).toHaveLength(1);
  });
});

describe("limits", () => {
  const limited = async (http: object) =>
    await startTestServer({
      graphConfigFile: PROJECT,
      projectKeys: { http: { app: APP, ...http } },
      readsPerMinute: 3,
      trustedProxies: ["loopback"],
    });
  const statuses = async (
    server: TestServer,
    path: string,
    headers: Record<string, string>,
    times: number,
  ) => {
    const answers: number[] = [];
    for (let count = 0; count < times; count += 1) answers.push((await ask(server, path, { headers }))[0]);
    return answers;
  };

  test("own routes count as reads of the user if they require a caller", async () => {
    const server = await limited({ enable_custom_route_auth: true });
    try {
      expect(await statuses(server, "/hello/Ann", ALICE, 5)).toEqual([200, 200, 200, 429, 429]);
      // They share the bucket of the API's routes, and no other user's.
      expect(await statuses(server, "/threads/00000000-0000-4000-8000-000000000000", ALICE, 1)).toEqual([
        429,
      ]);
      expect(await statuses(server, "/hello/Ann", { authorization: "Bearer bob-token" }, 1)).toEqual([200]);
    } finally {
      await server.close();
    }
  });

  test("open own routes count by the address", async () => {
    const server = await limited({});
    try {
      const from = (address: string) => ({ "x-forwarded-for": address });
      expect(await statuses(server, "/hello/Ann", from("10.1.1.1"), 5)).toEqual([200, 200, 200, 429, 429]);
      expect(await statuses(server, "/hello/Ann", from("10.1.1.2"), 1)).toEqual([200]);
      // An unknown path is counted once: three requests are accepted.
      expect(await statuses(server, "/nope", { ...ALICE, ...from("10.1.1.3") }, 4)).toEqual([
        404, 404, 404, 429,
      ]);
    } finally {
      await server.close();
    }
  });
});

test("LANGGRAPH_AUTH and LANGGRAPH_HTTP of an image equal the file's settings", async () => {
  const server = await startTestServer({
    projectKeys: projectKeysIn({
      LANGGRAPH_AUTH: JSON.stringify({ path: AUTH }),
      LANGGRAPH_HTTP: JSON.stringify({ app: APP, enable_custom_route_auth: true }),
    }),
  });
  try {
    expect(await ask(server, "/hello/Ann")).toEqual(REFUSED);
    expect(await ask(server, "/hello/Ann", { headers: ALICE })).toEqual([
      200,
      { hello: "Ann", user: "alice" },
    ]);
  } finally {
    await server.close();
  }
});
