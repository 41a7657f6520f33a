import { afterAll, beforeAll, expect, test } from "vitest";
import { newId } from "../../src/platform/lib/ids.ts";
import { feature } from "../compatibility/feature.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { bodyFieldsOf } from "./comparison.ts";
import { contract, operations } from "./contract.ts";
import { samplesOf } from "./samples.ts";
import { MISSING, SHORT, wireOf } from "./wire.ts";

/** Every value that the contract allows for a field of a body, sent to the server: one request for each. */

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ jobsPerWorker: 30 });
});
afterAll(async () => {
  await wire.cancelAll();
  await server.close();
});

const wire = wireOf(() => server.url);
const YEARLY = { assistant_id: "two-step", schedule: "0 0 1 1 *" };
const aCron = async (): Promise<string> => (await wire.must("POST /runs/crons", YEARLY))["cron_id"]!;

/** The path for a body, and its other required fields. Streams of runs accept the same as the other paths. */
const REQUESTS: Record<string, { path?: () => Promise<string>; body?: object }> = {
  "POST /assistants": { body: { graph_id: "agent" } },
  "POST /assistants/search": {},
  "POST /assistants/count": {},
  "PATCH /assistants/{assistant_id}": { path: async () => `/assistants/${await wire.anAssistant()}` },
  "POST /threads": {},
  "POST /threads/search": {},
  "POST /threads/count": {},
  "POST /threads/prune": { body: { thread_ids: [MISSING] } },
  "PATCH /threads/{thread_id}": { path: async () => `/threads/${await wire.aThread()}` },
  "POST /threads/{thread_id}/state": { path: async () => `/threads/${await wire.aThreadWithState()}/state` },
  "POST /threads/{thread_id}/history": { path: async () => `/threads/${await wire.aThread()}/history` },
  "POST /threads/{thread_id}/runs": {
    path: async () => `/threads/${await wire.aThread()}/runs`,
    body: SHORT,
  },
  "POST /runs": { body: SHORT },
  "POST /threads/{thread_id}/runs/crons": {
    path: async () => `/threads/${await wire.aThread()}/runs/crons`,
    body: YEARLY,
  },
  "POST /runs/crons": { body: YEARLY },
  "POST /runs/crons/search": {},
  "POST /runs/crons/count": {},
  "PATCH /runs/crons/{cron_id}": { path: async () => `/runs/crons/${await aCron()}` },
  "PUT /store/items": { body: { namespace: ["a"], key: "b", value: {} } },
  "DELETE /store/items": { body: { namespace: ["a"], key: "b" } },
  "POST /store/items/search": {},
  "POST /store/namespaces": {},
};

/** Paths with the same body as another one, or without a JSON record: MCP, A2A, commands (test/protocols/streaming). */
const ELSEWHERE = /\/(latest|cancel|batch|checkpoint|stream|wait|events|commands|mcp\/|a2a\/.*)$/;

test("no operation with a body is forgotten", () => {
  const withBody = operations.filter(({ described }) => described.requestBody !== undefined);
  const left = withBody.filter(({ name, path }) => !(name in REQUESTS) && !ELSEWHERE.test(path));
  expect(left.map(({ name }) => name)).toEqual([]);
});

/** The contract accepts any text here, but these values must name a record. */
const NAMES: Record<string, unknown[]> = {
  "POST /assistants: assistant_id": [newId()],
  assistant_id: ["two-step"],
  graph_id: ["agent"],
  as_node: ["first", "__start__", "__end__", "__copy__"],
  schedule: ["*/5 1-3 * 2 1,3"],
  timezone: ["Europe/Berlin"],
  supersteps: [[]],
};

interface Refusal {
  /** Matches `POST /runs: durability "sync"`. */
  refused: RegExp;
  because: string;
}

const REFUSALS: Refusal[] = [
  {
    refused: /^(POST \/threads|PATCH \/threads\/\{thread_id\}): ttl \{("strategy":"\w+")?\}$/,
    because: "`ttl` without minutes is refused, because it does not say how long a thread lives",
  },
  {
    refused:
      /^POST \/threads\/\{thread_id\}\/(state|history|runs): (checkpoint|before) \{"checkpoint_(id|ns)":"text"\}$/,
    because: "a checkpoint that can't exist is refused",
  },
];

for (const operation of operations) {
  const request = REQUESTS[operation.name];
  if (request === undefined) continue;
  const values = Object.entries(bodyFieldsOf(operation.described, contract)).flatMap(([field, schemas]) =>
    (
      NAMES[`${operation.name}: ${field}`] ??
      NAMES[field] ??
      schemas.flatMap((schema) => samplesOf(schema, contract))
    ).map((value) => ({
      field,
      value,
      line: `${operation.name}: ${field} ${JSON.stringify(value)}`,
    })),
  );
  const known = REFUSALS.filter(({ refused }) => values.some(({ line }) => refused.test(line)));
  const reasons = [...new Set(known.map(({ because }) => because))].join("; ");
  feature(
    {
      table: "Values that the contract allows in bodies",
      row: operation.name,
      column: "each value of each field is taken",
      differs: reasons === "" ? undefined : reasons,
    },
    async () => {
      const refused: string[] = [];
      for (const { field, value, line } of values) {
        const path = (await request.path?.()) ?? operation.path;
        const body = { ...request.body, [field]: value };
        const { status, text } = await wire.send(`${operation.method.toUpperCase()} ${path}`, body);
        if (status >= 300) refused.push(status < 500 ? line : `${line}: ${text}`);
      }
      const surprising = refused.filter((line) => !known.some((refusal) => refusal.refused.test(line)));
      expect(surprising).toEqual([]);
      expect(known.filter((refusal) => !refused.some((line) => refusal.refused.test(line)))).toEqual([]);
    },
  );
}
