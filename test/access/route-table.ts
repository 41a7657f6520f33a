import type { Actions, Resource } from "../../src/access/values.ts";
import { OPEN_ROUTES } from "../../src/http/open-routes.ts";

/** The events that every route authorizes, and their resources. A new route needs a line here. */

type Event = { [R in Resource]: `${R}:${Actions[R]}` }[Resource];
export interface Expected {
  events: readonly Event[];
  body?: unknown;
  query?: string;
  /** Answers with an endless stream, also for a missing record. */
  isEndless?: true;
}

/** Records without an owner, which every caller may see. */
const NOTHING: Expected = { events: [] };
const asks = (...events: Event[]): Expected => ({ events });
const given = (body: unknown, ...events: Event[]): Expected => ({ events, body });

export const MISSING = "00000000-0000-7000-8000-000000000000";
/** The path of a route with values for its parameters. */
export const pathWith = (path: string, valueOf: (name: string) => string): string =>
  path.replace(/\/:(\w+)/g, (_parameter, name: string) => `/${valueOf(name)}`);
export const missingPath = (path: string): string =>
  pathWith(path, (name) => (name === "task" ? `${MISSING}:${MISSING}` : MISSING)).replace("*", "/x");

const run = { assistant_id: MISSING, input: {} };
const creation = given(run, "threads:create_run", "assistants:read");
/** Of A2A: in the older dialect each part has a `kind`. */
const said = { role: "ROLE_USER", messageId: "m", parts: [{ kind: "data", data: {} }] };
const cron = { ...run, schedule: "0 9 * * *" };

export const ROUTES: Record<string, Expected> = {
  "GET /": NOTHING,
  "GET /docs": NOTHING,
  "GET /docs/static/index.html": NOTHING,
  "GET /docs/static/swagger-initializer.js": NOTHING,
  "GET /docs/static/theme/docs-key.js": NOTHING,
  "GET /docs/static/*": NOTHING,
  "GET /docs/json": NOTHING,
  "GET /docs/yaml": NOTHING,
  "GET /openapi.json": NOTHING,
  "GET /console": NOTHING,
  "GET /console/sign-in.json": NOTHING,
  "GET /console/caller": NOTHING,
  "GET /console/*": NOTHING,
  "OPTIONS *": NOTHING,
  "GET /ok": NOTHING,
  "POST /ui/:assistant_id": given({ name: "card" }, "assistants:read"),
  "GET /ui/:assistant_id/:file": NOTHING,
  // Of an assistant that exists: also threads:read and threads:create_run.
  "POST /agui/:assistant_id": given({ threadId: MISSING, runId: "1", messages: [] }, "assistants:read"),
  "POST /agui/:assistant_id/cancel": given({ threadId: MISSING, runId: "1" }, "threads:read"),
  "GET /info": NOTHING,
  "GET /metrics": NOTHING,
  "GET /queue": NOTHING,

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

  "POST /threads/:thread_id/commands": given(
    { id: 1, method: "run.start", params: run },
    "threads:read",
    ...creation.events,
  ),
  // A WebSocket route; other requests get a 404.
  "GET /threads/:thread_id/stream/events": NOTHING,
  "GET /threads/:thread_id/stream": { ...asks("threads:read"), isEndless: true },
  "POST /mcp": given(
    { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "agent", arguments: { messages: [] } } },
    ...creation.events,
  ),
  // Answers 405.
  "GET /mcp": NOTHING,
  "DELETE /mcp": NOTHING,
  "POST /threads/:thread_id/stream/events": {
    ...given({ channels: ["values"] }, "threads:read"),
    isEndless: true,
  },

  "GET /.well-known/agent-card.json": { ...asks("assistants:read"), query: `?assistant_id=${MISSING}` },
  "GET /a2a/:assistant_id/.well-known/agent-card.json": asks("assistants:read"),
  "POST /a2a/:assistant_id": given(
    { jsonrpc: "2.0", id: 1, method: "message/send", params: { message: { ...said, role: "user" } } },
    ...creation.events,
  ),

  "POST /threads/:thread_id/runs": creation,
  "POST /threads/:thread_id/runs/stream": creation,
  "POST /threads/:thread_id/runs/wait": creation,
  "POST /runs": creation,
  "POST /runs/stream": creation,
  "POST /runs/wait": creation,
  "POST /runs/batch": { ...creation, body: [run] },
  "POST /runs/cancel": given({ run_ids: [MISSING] }, "threads:update"),
  "POST /runs/search": given({}, "threads:search"),
  "GET /runs/summary": asks("threads:search"),
  "GET /threads/:thread_id/runs": asks("threads:read"),
  "GET /threads/:thread_id/runs/:run_id": asks("threads:read"),
  "GET /threads/:thread_id/runs/:run_id/trace": asks("threads:read"),
  "DELETE /threads/:thread_id/runs/:run_id": asks("threads:delete"),
  "GET /threads/:thread_id/runs/:run_id/join": asks("threads:read"),
  "GET /threads/:thread_id/runs/:run_id/stream": asks("threads:read"),
  "GET /runs/:run_id/stream": asks("threads:read"),
  "POST /threads/:thread_id/runs/:run_id/cancel": asks("threads:update"),

  "GET /usage": asks("threads:search"),

  "POST /threads/:thread_id/runs/crons": given(cron, "crons:create", ...creation.events),
  "POST /runs/crons": given(cron, "crons:create", ...creation.events),
  "POST /runs/crons/search": given({}, "crons:search"),
  "POST /runs/crons/count": given({}, "crons:search"),
  "GET /runs/crons/:cron_id": asks("crons:read"),
  // For an existing cron the route also authorizes run creation, which depends on the cron.
  "PATCH /runs/crons/:cron_id": given({ enabled: false }, "crons:update"),
  "DELETE /runs/crons/:cron_id": asks("crons:delete"),

  "POST /webhooks/deliveries/search": given({}, "threads:search"),
  "GET /webhooks/deliveries/:run_id": asks("threads:read"),
  "POST /webhooks/deliveries/:run_id/replay": asks("threads:update"),

  "PUT /store/items": given({ namespace: ["n"], key: "k", value: {} }, "store:put"),
  "GET /store/items": { events: ["store:get"], query: "?namespace=n&key=k" },
  "DELETE /store/items": given({ namespace: ["n"], key: "k" }, "store:delete"),
  "POST /store/items/search": given({}, "store:search"),
  "POST /store/namespaces": given({}, "store:list_namespaces"),
};

/** Routes that exist only with `mcp.authorization_servers`. test/protocols/mcp has their tests. */
const ONLY_IF_NAMED = /oauth-protected-resource/;

/**
 * Why a route authorizes no event: it is open, as the server's own table says, or it answers records without an owner to each caller with a
 * key. Every route is listed here or has events.
 */
export const WITHOUT_EVENTS: Record<string, "open" | "any key"> = {
  ...Object.fromEntries(
    [...OPEN_ROUTES.keys()]
      .filter((route) => !ONLY_IF_NAMED.test(route))
      .map((route) => [route, "open" as const]),
  ),
  "GET /docs/json": "any key",
  "GET /docs/yaml": "any key",
  "GET /openapi.json": "any key",
  "GET /console/caller": "any key",
  "GET /metrics": "any key",
  "GET /queue": "any key",
  "GET /mcp": "any key",
  "DELETE /mcp": "any key",
  // A WebSocket authorizes each command; other requests get a 404.
  "GET /threads/:thread_id/stream/events": "any key",
};
