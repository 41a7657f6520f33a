import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createAuthorize, type Authorize } from "../../src/access/authorize.ts";
import type { Caller } from "../../src/access/caller.ts";
import type { Actions, Resource } from "../../src/access/actions.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";

/** For every route of the server what is asked of authorization, and for which resource. A new route needs its line here. */

type Event = { [R in Resource]: `${R}:${Actions[R]}` }[Resource];
interface Expected {
  events: readonly Event[];
  body?: unknown;
  query?: string;
}

/** Nobody's records: what everybody who has got in may see. */
const NOTHING: Expected = { events: [] };
const asks = (...events: Event[]): Expected => ({ events });
const given = (body: unknown, ...events: Event[]): Expected => ({ events, body });

const MISSING = "00000000-0000-7000-8000-000000000000";
const run = { assistant_id: MISSING, input: {} };
const creation = given(run, "threads:create_run", "assistants:read");

const ROUTES: Record<string, Expected> = {
  "GET /": NOTHING,
  "GET /docs": NOTHING,
  "GET /docs/static/index.html": NOTHING,
  "GET /docs/static/swagger-initializer.js": NOTHING,
  "GET /docs*": NOTHING,
  "GET /docs/json": NOTHING,
  "GET /docs/yaml": NOTHING,
  "GET /openapi.json": NOTHING,
  "OPTIONS *": NOTHING,
  "GET /ok": NOTHING,
  "GET /info": NOTHING,
  "GET /metrics": NOTHING,

  "POST /assistants": given({ graph_id: "agent" }, "assistants:create"),
  "POST /assistants/search": given({}, "assistants:search"),
  "POST /assistants/count": given({}, "assistants:search"),
  "GET /assistants/:assistant_id": asks("assistants:read"),
  "PATCH /assistants/:assistant_id": given({}, "assistants:update"),
  "DELETE /assistants/:assistant_id": asks("assistants:delete"),
  "POST /assistants/:assistant_id/versions": given({}, "assistants:read"),
  "POST /assistants/:assistant_id/latest": given({ version: 1 }, "assistants:update"),
  "GET /assistants/:assistant_id/graph": asks("assistants:read"),
  "GET /assistants/:assistant_id/schemas": asks("assistants:read"),
  "GET /assistants/:assistant_id/subgraphs": asks("assistants:read"),
  "GET /assistants/:assistant_id/subgraphs/:namespace": asks("assistants:read"),

  "POST /threads": given({}, "threads:create"),
  "POST /threads/search": given({}, "threads:search"),
  "POST /threads/count": given({}, "threads:search"),
  "POST /threads/prune": given({ thread_ids: [MISSING] }, "threads:delete"),
  "GET /threads/:thread_id": asks("threads:read"),
  "PATCH /threads/:thread_id": given({}, "threads:update"),
  "DELETE /threads/:thread_id": asks("threads:delete"),
  "POST /threads/:thread_id/copy": asks("threads:read", "threads:create"),
  "GET /threads/:thread_id/storage": asks("threads:read"),
  "GET /threads/:thread_id/state": asks("threads:read"),
  "GET /threads/:thread_id/state/:checkpoint_id": asks("threads:read"),
  "POST /threads/:thread_id/state/checkpoint": given(
    { checkpoint: { checkpoint_id: MISSING } },
    "threads:read",
  ),
  "POST /threads/:thread_id/state": given({ values: {} }, "threads:update"),
  "PATCH /threads/:thread_id/state": given({ metadata: {} }, "threads:update"),
  "GET /threads/:thread_id/history": asks("threads:read"),
  "POST /threads/:thread_id/history": given({}, "threads:read"),

  "POST /threads/:thread_id/runs": creation,
  "POST /threads/:thread_id/runs/stream": creation,
  "POST /threads/:thread_id/runs/wait": creation,
  "POST /runs": creation,
  "POST /runs/stream": creation,
  "POST /runs/wait": creation,
  "POST /runs/batch": { ...creation, body: [run] },
  "POST /runs/cancel": given({ run_ids: [MISSING] }, "threads:update"),
  "POST /runs/search": given({}, "threads:search"),
  "GET /threads/:thread_id/runs": asks("threads:read"),
  "GET /threads/:thread_id/runs/:run_id": asks("threads:read"),
  "DELETE /threads/:thread_id/runs/:run_id": asks("threads:delete"),
  "GET /threads/:thread_id/runs/:run_id/join": asks("threads:read"),
  "GET /threads/:thread_id/runs/:run_id/stream": asks("threads:read"),
  "GET /runs/:run_id/stream": asks("threads:read"),
  "POST /threads/:thread_id/runs/:run_id/cancel": asks("threads:update"),

  "PUT /store/items": given({ namespace: ["n"], key: "k", value: {} }, "store:put"),
  "GET /store/items": { events: ["store:get"], query: "?namespace=n&key=k" },
  "DELETE /store/items": given({ namespace: ["n"], key: "k" }, "store:delete"),
  "POST /store/items/search": given({}, "store:search"),
  "POST /store/namespaces": given({}, "store:list_namespaces"),
};

/** The routes of Fastify's tree: a line has the rest of a path under that of its parent, and its methods. */
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
      .map((method) => `${method} ${path}`);
  });
};

const KEY = "canary-2c6b-the-key";
const everything = createAuthorize();
let asked: string[] = [];
let callers: Caller[] = [];
const authorize: Authorize = async (caller, resource, action) => {
  if (caller.kind !== "server") {
    asked.push(`${resource}:${action}`);
    callers.push(caller);
  }
  return await everything(caller, resource, action);
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

test("every route has its line in the table, and no line is left over", () => {
  const routes = routesOf(server.app.printRoutes({ commonPrefix: false }));
  expect(routes.length).toBeGreaterThan(50);
  expect(routes.toSorted()).toEqual(Object.keys(ROUTES).toSorted());
});

test.each(Object.entries(ROUTES).filter(([route]) => !route.startsWith("OPTIONS")))(
  "%s asks for each of its events, as the caller of the request",
  async (route, { events, body, query = "" }) => {
    const [method = "", path = ""] = route.split(" ");
    const answer = await fetch(`${server.url}${path.replace(/:\w+/g, MISSING).replace("*", "/x")}${query}`, {
      method,
      redirect: "manual",
      headers: { "x-api-key": KEY, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    await answer.arrayBuffer();
    expect([200, 204, 302, 404]).toContain(answer.status);
    expect([...new Set(asked)].toSorted()).toEqual(events.toSorted());
    for (const caller of callers)
      expect(caller).toEqual({ kind: "key", id: expect.stringMatching(/^[0-9a-f]{12}$/) });
  },
);
