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
const checkpointOf = async (threadId: string): Promise<string> => {
  const { checkpoint } = (await wire.must(`GET /threads/${threadId}/state`)) as unknown as {
    checkpoint: { checkpoint_id: string };
  };
  return checkpoint.checkpoint_id;
};

testOperations("Threads", wire, {
  "POST /threads": {
    200: () => send("POST /threads", { metadata: { a: 1 }, ttl: { strategy: "delete", ttl: 60 } }),
    409: async () => send("POST /threads", { thread_id: await wire.aThread() }),
    422: () => send("POST /threads", { thread_id: "first" }),
  },
  "POST /threads/search": {
    200: async () =>
      send("POST /threads/search", { ids: [await wire.aThreadWithState(), await wire.aThread()] }),
    422: () => send("POST /threads/search", { limit: 0 }),
  },
  "POST /threads/count": {
    200: () => send("POST /threads/count", { status: "idle" }),
    404: () => send("POST /threads/count", { metadata: { nobody: "has this" } }),
    422: () => send("POST /threads/count", { status: "lost" }),
  },
  "POST /threads/prune": {
    200: async () =>
      send("POST /threads/prune", { thread_ids: [await wire.aThreadWithState()], strategy: "keep_latest" }),
    422: () => send("POST /threads/prune", {}),
  },
  "GET /threads/{thread_id}/storage": {
    200: async () => send(`GET /threads/${await wire.aThreadWithState()}/storage`),
    404: () => send(`GET /threads/${MISSING}/storage`),
    422: () => send("GET /threads/first/storage"),
  },
  "GET /threads/{thread_id}/state": {
    200: async () => send(`GET /threads/${await wire.aThreadWithState("approval")}/state?subgraphs=true`),
    422: async () => send(`GET /threads/${await wire.aThread()}/state?subgraphs=perhaps`),
  },
  "POST /threads/{thread_id}/state": {
    200: async () => send(`POST /threads/${await wire.aThreadWithState()}/state`, { values: null }),
    422: async () => send(`POST /threads/${await wire.aThreadWithState()}/state`, { values: 1 }),
  },
  "GET /threads/{thread_id}/state/{checkpoint_id}": {
    200: async () => {
      const threadId = await wire.aThreadWithState();
      return send(`GET /threads/${threadId}/state/${await checkpointOf(threadId)}`);
    },
    422: () => send(`GET /threads/first/state/${MISSING}`),
  },
  "POST /threads/{thread_id}/state/checkpoint": {
    200: async () => {
      const threadId = await wire.aThreadWithState();
      const checkpoint = { thread_id: threadId, checkpoint_id: await checkpointOf(threadId) };
      return send(`POST /threads/${threadId}/state/checkpoint`, { checkpoint, subgraphs: true });
    },
    422: async () => send(`POST /threads/${await wire.aThread()}/state/checkpoint`, { checkpoint: 1 }),
  },
  "GET /threads/{thread_id}/history": {
    200: async () => send(`GET /threads/${await wire.aThreadWithState()}/history?limit=100`),
    422: async () => send(`GET /threads/${await wire.aThread()}/history?limit=0`),
  },
  "POST /threads/{thread_id}/history": {
    200: async () => send(`POST /threads/${await wire.aThreadWithState("approval")}/history`, { limit: 100 }),
    422: async () => send(`POST /threads/${await wire.aThread()}/history`, { limit: 0 }),
  },
  "POST /threads/{thread_id}/copy": {
    200: async () => send(`POST /threads/${await wire.aThreadWithState()}/copy`),
    409: async () => {
      const threadId = await wire.aThreadWithState();
      await wire.must(`POST /threads/${threadId}/copy`);
      return send(`POST /threads/${threadId}/copy`);
    },
    422: () => send("POST /threads/first/copy"),
  },
  "GET /threads/{thread_id}": {
    200: async () => send(`GET /threads/${await wire.aThreadWithState("approval")}?include=ttl`),
    404: () => send(`GET /threads/${MISSING}`),
    422: () => send("GET /threads/first"),
  },
  "DELETE /threads/{thread_id}": {
    200: async () => send(`DELETE /threads/${await wire.aThreadWithState()}`),
    404: () => send(`DELETE /threads/${MISSING}`),
    422: () => send("DELETE /threads/first"),
  },
  "PATCH /threads/{thread_id}": {
    200: async () => send(`PATCH /threads/${await wire.aThread()}`, { metadata: { a: 1 } }),
    404: () => send(`PATCH /threads/${MISSING}`, { metadata: {} }),
    422: async () => send(`PATCH /threads/${await wire.aThread()}`, { metadata: 1 }),
  },
});
