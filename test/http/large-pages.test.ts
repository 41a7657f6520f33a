import { expect, it } from "vitest";
import type { apiOf } from "../helpers/api.ts";
import type { Answer, Refusal } from "../helpers/api.ts";
import type { TestServer } from "../helpers/app.ts";
import { eventually } from "../helpers/conditions.ts";
import { query } from "../helpers/query.ts";
import { onServer } from "../helpers/servers.ts";

const MEGABYTE = 1_000_000;

let server: TestServer;
let api: ReturnType<typeof apiOf>;
onServer({}, (opened) => ({ server, api } = opened));

/** All pages of a search: the number of items on each, and the totals. */
const pages = async <Found>(path: string, body: object, itemsOf: (answer: Found) => unknown[]) => {
  const counts: number[] = [];
  const totals = new Set<string | null>();
  for (let offset: number | undefined = 0; offset !== undefined;) {
    const answer: Answer<Found> = await api.post<Found>(path, { ...body, limit: 1_000, offset });
    expect(answer.status).toBe(200);
    counts.push(itemsOf(answer.body).length);
    totals.add(answer.headers.get("x-pagination-total"));
    const next: string | null = answer.headers.get("x-pagination-next");
    offset = next === null ? undefined : Number(next);
  }
  return { counts, totals: [...totals] };
};

it("ends a page of items early when they are large, and names the start of the next one", async () => {
  for (let index = 0; index < 20; index += 1) {
    const value = { text: `${index}`.padEnd(MEGABYTE, "x") };
    await fetch(`${server.url}/store/items`, {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ namespace: ["large"], key: `${index}`, value }),
    });
  }
  const search = { namespace_prefix: ["large"] };
  expect(
    (await pages<{ items: unknown[] }>("/store/items/search", search, ({ items }) => items)).counts,
  ).toEqual([17, 3]);
  const small = await api.post("/store/items/search", { ...search, limit: 5 });
  expect(small.headers.get("x-pagination-next")).toBe(null);
});

it("ends a page of assistants and of versions early, with the true total", async () => {
  const { body } = await api.post<{ assistant_id: string }>("/assistants", { graph_id: "agent" });
  const { assistant_id: id } = body;
  for (let index = 0; index < 9; index += 1) {
    expect((await api.patch(`/assistants/${id}`, {})).status).toBe(200);
    expect((await api.post("/assistants", { graph_id: "agent", metadata: { kind: "large" } })).status).toBe(
      200,
    );
  }
  // Larger than the current body limit.
  await query(
    server,
    "update threadloom.assistants set context = jsonb_build_object('text', repeat('x', 3000000)) where metadata ? 'kind'",
  );
  await query(
    server,
    "update threadloom.assistant_versions set context = jsonb_build_object('text', repeat('x', 3000000)) where version > 1",
  );
  const listed = (found: unknown[]) => found;
  expect(await pages("/assistants/search", { metadata: { kind: "large" } }, listed)).toEqual({
    counts: [6, 3],
    totals: ["9"],
  });
  expect(await pages(`/assistants/${id}/versions`, {}, listed)).toEqual({ counts: [6, 4], totals: ["10"] });
});

it("ends a search and a count of any resource that take too long", async () => {
  const holding = query(
    server,
    `begin; lock table threadloom.threads, threadloom.assistants, threadloom.store_items in access exclusive mode; select pg_sleep(60); commit`,
  ).catch(() => undefined);
  const paths = [
    "/threads/count",
    "/assistants/search",
    "/assistants/count",
    "/store/items/search",
    "/store/namespaces",
  ];
  try {
    await eventually("the tables are locked", async () => {
      const [{ count } = { count: "" }] = await query<{ count: string }>(
        server,
        "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()",
      );
      return count === "1";
    });
    const answers = await Promise.all(paths.map((path) => api.post<Refusal>(path, {})));
    for (const { status, body } of answers) {
      expect([status, body.detail]).toEqual([422, "This takes longer than 2 seconds; narrow the filter."]);
    }
  } finally {
    await query(
      server,
      "select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()",
    );
    await holding;
  }
});
