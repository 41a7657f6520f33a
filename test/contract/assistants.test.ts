import { afterAll, beforeAll } from "vitest";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { testOperations } from "./answers.ts";
import { MISSING, wireOf } from "./wire.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

const wire = wireOf(() => server.url);
const { send } = wire;

testOperations("Assistants", wire, {
  "POST /assistants": {
    200: () =>
      send("POST /assistants", {
        graph_id: "agent",
        name: "all",
        description: "with everything",
        config: { tags: ["a"], recursion_limit: 10, configurable: { key: "value" } },
        context: {},
        metadata: { a: 1 },
      }),
    404: () => send("POST /assistants", { graph_id: "nothing" }),
    409: async () => send("POST /assistants", { graph_id: "agent", assistant_id: await wire.anAssistant() }),
    422: () => send("POST /assistants", {}),
  },
  "POST /assistants/search": {
    200: () => send("POST /assistants/search", {}),
    404: () => send("POST /assistants/search", { graph_id: "nothing" }),
    422: () => send("POST /assistants/search", { limit: 0 }),
  },
  "POST /assistants/count": {
    200: () => send("POST /assistants/count", {}),
    404: () => send("POST /assistants/count", { graph_id: "nothing" }),
    422: () => send("POST /assistants/count", { metadata: 1 }),
  },
  "GET /assistants/{assistant_id}": {
    200: () => send("GET /assistants/agent"),
    404: () => send(`GET /assistants/${MISSING}`),
  },
  "DELETE /assistants/{assistant_id}": {
    200: async () => send(`DELETE /assistants/${await wire.anAssistant()}?delete_threads=true`),
    404: () => send(`DELETE /assistants/${MISSING}`),
    422: async () => send(`DELETE /assistants/${await wire.anAssistant()}?delete_threads=perhaps`),
  },
  "PATCH /assistants/{assistant_id}": {
    200: async () => send(`PATCH /assistants/${await wire.anAssistant()}`, { name: "new" }),
    404: () => send(`PATCH /assistants/${MISSING}`, { name: "new" }),
    422: async () => send(`PATCH /assistants/${await wire.anAssistant()}`, { metadata: 1 }),
  },
  "GET /assistants/{assistant_id}/graph": {
    200: () => send("GET /assistants/research/graph?xray=true"),
    404: () => send(`GET /assistants/${MISSING}/graph`),
    422: () => send("GET /assistants/research/graph?xray=perhaps"),
  },
  "GET /assistants/{assistant_id}/subgraphs": {
    200: () => send("GET /assistants/research/subgraphs?recurse=true"),
    404: () => send(`GET /assistants/${MISSING}/subgraphs`),
    422: () => send("GET /assistants/research/subgraphs?recurse=perhaps"),
  },
  "GET /assistants/{assistant_id}/subgraphs/{namespace}": {
    200: () => send("GET /assistants/research/subgraphs/investigate"),
    422: () => send("GET /assistants/research/subgraphs/investigate?recurse=perhaps"),
  },
  "GET /assistants/{assistant_id}/schemas": {
    200: () => send("GET /assistants/agent/schemas"),
    404: () => send(`GET /assistants/${MISSING}/schemas`),
    422: () => send("GET /assistants/no%20graph%00/schemas"),
  },
  "POST /assistants/{assistant_id}/versions": {
    200: () => send("POST /assistants/agent/versions", {}),
    422: () => send("POST /assistants/agent/versions", { limit: 0 }),
  },
  "POST /assistants/{assistant_id}/latest": {
    200: async () => send(`POST /assistants/${await wire.anAssistant()}/latest`, { version: 1 }),
    404: async () => send(`POST /assistants/${await wire.anAssistant()}/latest`, { version: 9 }),
    422: async () => send(`POST /assistants/${await wire.anAssistant()}/latest`, { version: "first" }),
  },
});
