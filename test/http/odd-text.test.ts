import { afterAll, beforeAll, expect, test } from "vitest";
import { addressOf, operationsOf, withEachText, type Json, type Operation } from "../abuse/operations.ts";
import { apiOf } from "../helpers/api.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";

let server: TestServer;
let operations: Operation[];
beforeAll(async () => {
  server = await startTestServer();
  const api = apiOf(server);
  const thread_id = await api.aThread();
  await api.aFinishedRun(thread_id, { assistant_id: "counter", input: {} });
  const { checkpoint } = await api.state(thread_id);
  operations = operationsOf(server.app.swagger(), {
    assistant_id: "counter",
    thread_id,
    graph_id: "counter",
    // Valid fields, so that only the tested one can be refused.
    ...checkpoint,
    extract: { key: "values.text" },
    recursion_limit: 25,
    query: null,
    webhook: null,
    after_seconds: null,
    supersteps: null,
  });
});
afterAll(async () => {
  await server.close();
});

const ODD = [
  ["half a surrogate pair", "\ud800"],
  ["a NUL", "a\0b"],
] as const;

/** The status of the answer, without waiting for the end of a stream. */
const statusOf = async (method: string, address: string, body?: Json): Promise<number> => {
  const stop = new AbortController();
  const answer = await fetch(`${server.url}${address}`, {
    method,
    signal: stop.signal,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  stop.abort();
  return answer.status;
};

test.each(ODD)("a text in a body causes no server error when it is %s", async (_name, odd) => {
  const faults: string[] = [];
  for (const { method, template, path, bodies } of operations) {
    const address = addressOf({ template, path, query: {} });
    const seen = new Set<string>();
    for (const body of bodies) {
      for (const { at, value } of withEachText(body, odd)) {
        if (seen.has(at)) continue;
        seen.add(at);
        if ((await statusOf(method, address, value)) >= 500) faults.push(`${method} ${template} ${at}`);
      }
    }
  }
  expect(faults).toEqual([]);
});

test.each(ODD)("a text in a path or a query causes no server error when it is %s", async (_name, odd) => {
  const faults: string[] = [];
  for (const { method, template, path, query, bodies } of operations) {
    const requests = [
      ...Object.keys(path).map((name) => ({ path: { ...path, [name]: odd }, query })),
      ...Object.keys(query).map((name) => ({ path, query: { ...query, [name]: odd } })),
    ];
    for (const changed of requests) {
      const address = addressOf({ template, ...changed });
      if ((await statusOf(method, address, bodies[0])) >= 500) faults.push(`${method} ${address}`);
    }
  }
  expect(faults).toEqual([]);
});
