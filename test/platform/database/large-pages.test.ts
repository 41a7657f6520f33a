import { beforeAll, expect, test } from "vitest";
import type { Api } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { query } from "../../helpers/query.ts";
import { onServer } from "../../helpers/servers.ts";

/**
 * The cost of one page of records is limited, whatever their size. Otherwise a few clients with large records could block the searches of
 * all others.
 */

let server: TestServer;
let api: Api;
onServer({}, (opened) => ({ server, api } = opened));

const RECORDS = 50;
/** 6 MB, of which PostgreSQL stores 70 KB. */
const LARGE = `jsonb_build_object('kind', 'large', 'text', repeat('x', 6000000))`;
/** The maximum of one request: 20,000 elements. PostgreSQL writes each with 309 digits, slowly, so a record has 6 MB. */
const NUMBERS = `(select jsonb_build_object('numbers', jsonb_agg(1e308)) from generate_series(1, 20000))`;
/** A page ends with the record that reaches 16 MiB. */
const ON_A_PAGE = 3;
const ON_A_PAGE_OF_SUMMARIES = 1;

const storeRuns = async () => {
  const threadId = await api.aThread();
  const { body } = await api.post<{ assistant_id: string }[]>("/assistants/search", { limit: 1 });
  await query(
    server,
    `with large as materialized (select ${LARGE} as metadata)
     insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, metadata, kwargs, multitask_strategy)
     select gen_random_uuid(), $1, $2, 'agent', 'success', metadata, '{}', 'enqueue'
     from large, generate_series(1, ${RECORDS}) number`,
    [threadId, body[0]?.assistant_id],
  );
  return `/threads/${threadId}/runs`;
};
const storeAssistants = async () => {
  const { body } = await api.post<{ assistant_id: string }>("/assistants", { graph_id: "agent" });
  await query(
    server,
    `with large as materialized (select ${LARGE} as metadata)
     insert into threadloom.assistants (assistant_id, graph_id, name, metadata, version)
     select gen_random_uuid(), 'agent', 'large', metadata, 1 from large, generate_series(1, ${RECORDS}) number`,
  );
  await query(
    server,
    `with large as materialized (select ${LARGE} as metadata)
     insert into threadloom.assistant_versions (assistant_id, version, graph_id, name, config, context, metadata, created_at)
     select $1, number + 1, 'agent', 'large', '{}', '{}', metadata, now() from large, generate_series(1, ${RECORDS}) number`,
    [body.assistant_id],
  );
  return `/assistants/${body.assistant_id}/versions`;
};
const storeItems = async () => {
  await query(
    server,
    `with large as materialized (select ${NUMBERS} as value)
     insert into threadloom.store_items (namespace, key, value)
     select array['large'], 'item-' || number, value from large, generate_series(1, ${RECORDS}) number`,
  );
};

const storeThreads = async () => {
  await query(
    server,
    `with large as materialized (select ${LARGE} as metadata)
     insert into threadloom.threads (thread_id, metadata, created_at)
     select gen_random_uuid(), metadata, now() from large, generate_series(1, ${RECORDS}) number`,
  );
};
let runsPath: string;
let versionsPath: string;
beforeAll(async () => {
  runsPath = await storeRuns();
  await storeThreads();
  versionsPath = await storeAssistants();
  await storeItems();
});

const MANY = { limit: RECORDS };
test.each<[string, number, () => Promise<{ status: number; headers: Headers; body: unknown }>]>([
  ["threads", ON_A_PAGE, () => api.post("/threads/search", MANY)],
  [
    "threads by metadata",
    ON_A_PAGE,
    () => api.post("/threads/search", { ...MANY, metadata: { kind: "large" } }),
  ],
  ["runs", ON_A_PAGE_OF_SUMMARIES, () => api.post("/runs/search", MANY)],
  ["runs of a thread", ON_A_PAGE, () => api.get(`${runsPath}?limit=${RECORDS}`)],
  ["assistants", ON_A_PAGE, () => api.post("/assistants/search", { ...MANY, name: "large" })],
  ["versions", ON_A_PAGE, () => api.post(versionsPath, MANY)],
  ["items", ON_A_PAGE, () => api.post("/store/items/search", { ...MANY, namespace_prefix: ["large"] })],
])("a search of large records returns as many as a page has room for: %s", async (_, found, ask) => {
  let answer = await ask();
  // On a busy machine a search may exceed its time limit.
  for (let tries = 1; answer.status === 422 && tries < 50; tries += 1) answer = await ask();
  const records = Array.isArray(answer.body) ? answer.body : (answer.body as { items: unknown[] }).items;
  expect([answer.status, records?.length]).toEqual([200, found]);
  expect(answer.headers.get("x-pagination-next")).toBe(String(found));
});
