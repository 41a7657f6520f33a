import { afterAll, beforeAll, expect, test } from "vitest";
import { feature } from "../compatibility/feature.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { contract, operations } from "./contract.ts";
import { samplesOf } from "./samples.ts";
import { MISSING, wireOf } from "./wire.ts";

/** Every value that the contract allows for a parameter of a query, sent to the server: one request for each. */

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

const wire = wireOf(() => server.url);
const theFinished = async (): Promise<string> => {
  const { threadId, runId } = await wire.aFinishedRun();
  return `/threads/${threadId}/runs/${runId}`;
};

/** The request for a query, with its other required parameters, and the body. */
const REQUESTS: Record<string, { path?: () => Promise<string>; body?: object }> = {
  "DELETE /assistants/{assistant_id}": { path: async () => `/assistants/${await wire.anAssistant()}` },
  "GET /assistants/{assistant_id}/graph": { path: async () => "/assistants/research/graph" },
  "GET /assistants/{assistant_id}/subgraphs": { path: async () => "/assistants/research/subgraphs" },
  "GET /assistants/{assistant_id}/subgraphs/{namespace}": {
    path: async () => "/assistants/research/subgraphs/investigate",
  },
  "POST /assistants/{assistant_id}/latest": {
    path: async () => `/assistants/${await wire.anAssistant()}/latest`,
  },
  "GET /threads/{thread_id}/state": {
    path: async () => `/threads/${await wire.aThreadWithState()}/state`,
  },
  "GET /threads/{thread_id}/state/{checkpoint_id}": {
    path: async () => {
      const threadId = await wire.aThreadWithState();
      const state: unknown = await wire.must(`GET /threads/${threadId}/state`);
      const { checkpoint } = state as { checkpoint: { checkpoint_id: string } };
      return `/threads/${threadId}/state/${checkpoint.checkpoint_id}`;
    },
  },
  "GET /threads/{thread_id}/history": {
    path: async () => `/threads/${await wire.aThreadWithState()}/history`,
  },
  "GET /threads/{thread_id}": { path: async () => `/threads/${await wire.aThread()}` },
  "GET /threads/{thread_id}/runs": { path: async () => `/threads/${await wire.aThread()}/runs` },
  "GET /threads/{thread_id}/runs/{run_id}/join": { path: async () => `${await theFinished()}/join` },
  "GET /threads/{thread_id}/runs/{run_id}/stream": { path: async () => `${await theFinished()}/stream` },
  "POST /threads/{thread_id}/runs/{run_id}/cancel": { path: async () => `${await theFinished()}/cancel` },
  "POST /runs/cancel": { body: { status: "all" } },
  "GET /store/items": { path: async () => "/store/items?namespace=a&key=b" },
  "GET /metrics": {},
  "GET /ok": {},
};

test("no operation with a query is forgotten, except endless streams", () => {
  const withQuery = operations.filter(({ described: { parameters = [] } }) =>
    parameters.some((parameter) => parameter.in === "query"),
  );
  const left = withQuery.map(({ name }) => name).filter((name) => !(name in REQUESTS));
  expect(left).toEqual(["GET /threads/{thread_id}/stream"]);
});

/** The contract accepts any number or text here, but these values must name a record. */
const NAMES: Record<string, unknown[]> = { version: [1], before: [MISSING] };

for (const operation of operations) {
  const request = REQUESTS[operation.name];
  const parameters = (operation.described.parameters ?? []).filter((parameter) => parameter.in === "query");
  if (request === undefined) continue;
  feature(
    {
      table: "Values that the contract allows in queries",
      row: operation.name,
      column: "each value of each parameter is taken",
    },
    async () => {
      const refused: string[] = [];
      for (const { name, schema = {} } of parameters) {
        for (const value of NAMES[name] ?? samplesOf(schema, contract)) {
          const target = new URL((await request.path?.()) ?? operation.path, server.url);
          target.searchParams.delete(name);
          for (const item of [value].flat()) target.searchParams.append(name, String(item));
          const method = operation.method.toUpperCase();
          const place = `${target.pathname}${target.search}`;
          const { status, text } = await wire.send(`${method} ${place}`, request.body);
          if (status >= 300) refused.push(`${place}: ${text}`);
        }
      }
      expect(parameters).not.toEqual([]);
      expect(refused).toEqual([]);
    },
  );
}
