import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Encryption } from "../../../src/platform/encryption/encryption.ts";
import type { Database } from "../../../src/platform/database/database.ts";
import { invalid } from "../../../src/platform/domain/errors.ts";
import { runSearchBody, type RunRecord } from "../../../src/api/runs/schemas.ts";
import { createRunSearcher } from "../../../src/api/runs/search.ts";
import { apiOf, saying, type Answer, type Api, type Refusal } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { query } from "../../helpers/query.ts";
import { EVERY_THREAD } from "../../helpers/access.ts";

/** Searches runs of all threads by their fields and their time of creation. */

type Found = Partial<RunRecord>;

const COUNT = { assistant_id: "counter", input: saying("hello") };
const FAIL = { assistant_id: "failing", input: saying("hello") };
const LATER = { after_seconds: 3_600 };

let server: TestServer;
let api: Api;
/** In order of creation: each on a thread of its own, except the last, which is on the first one's thread. */
let runs: RunRecord[];
beforeAll(async () => {
  server = await startTestServer();
  api = apiOf(server);
  const made: RunRecord[] = [];
  for (const fields of [
    COUNT,
    FAIL,
    { ...COUNT, metadata: { shift: "late" } },
    { ...FAIL, ...LATER },
    FAIL,
  ]) {
    const threadId = made.length === 4 ? made[0]!.thread_id : await api.aThread();
    const run = await api.aRun(threadId, fields);
    made.push(
      "after_seconds" in fields ? run : await api.untilRunIs(threadId, run.run_id, "success", "error"),
    );
  }
  runs = made;
});
afterAll(() => server.close());

const search = (body: object = {}) => api.post<Found[]>("/runs/search", body);
const idsOf = async (body: object): Promise<(string | undefined)[]> =>
  (await search(body)).body.map(({ run_id: id }) => id);
const at = (...places: number[]): string[] => places.toReversed().map((place) => runs[place]!.run_id);

describe("a search of runs", () => {
  test("finds those of all threads, the newest first, without their arguments", async () => {
    const { status, body, headers } = await search();
    expect(status).toBe(200);
    expect(body).toEqual(runs.toReversed().map(({ kwargs: _, ...run }) => run));
    expect(headers.get("x-pagination-total")).toBe("5");
    expect(headers.get("x-pagination-next")).toBeNull();
    expect(await idsOf({ sort_by: "created_at", sort_order: "asc" })).toEqual(at(0, 1, 2, 3, 4).toReversed());
  });

  test("shows why runs failed", async () => {
    const { body } = await search({ status: "error" });
    expect(body.map(({ run_id, error }) => [run_id, error])).toEqual(
      [runs[4]!, runs[1]!].map(({ run_id, error }) => [run_id, error]),
    );
    expect(body[0]?.error).toMatchObject({ error: expect.any(String), message: expect.any(String) });
  });

  test.each<[string, () => object, number[]]>([
    ["status", () => ({ status: "success" }), [0, 2]],
    ["a status that is in the queue", () => ({ status: "pending" }), [3]],
    ["a status that none has", () => ({ status: "timeout" }), []],
    ["graph", () => ({ graph_id: "failing" }), [1, 3, 4]],
    ["graph and status", () => ({ graph_id: "failing", status: "error" }), [1, 4]],
    ["assistant", () => ({ assistant_id: runs[0]!.assistant_id }), [0, 2]],
    ["assistant, named by its graph", () => ({ assistant_id: "counter" }), [0, 2]],
    ["id", () => ({ run_id: runs[2]!.run_id }), [2]],
    ["thread", () => ({ thread_id: runs[0]!.thread_id }), [0, 4]],
    ["metadata", () => ({ metadata: { shift: "late" } }), [2]],
    ["the time from which on", () => ({ created_after: runs[2]!.created_at }), [2, 3, 4]],
    ["the time before which", () => ({ created_before: runs[2]!.created_at }), [0, 1]],
    ["a time before all", () => ({ created_before: "0000-01-01T00:00:00Z" }), []],
    ["a time after all", () => ({ created_after: "9999-12-31T23:59:59.999+00:00" }), []],
    [
      "graph, status and a span of time in another zone",
      () => ({
        graph_id: "failing",
        status: "error",
        created_after: new Date(Date.parse(runs[2]!.created_at)).toISOString().replace("Z", "+00:00"),
        created_before: "2999-01-01T02:00:00+02:00",
      }),
      [4],
    ],
  ])("finds them by %s", async (_, filter, places) => {
    expect(await idsOf(filter())).toEqual(at(...places));
  });

  test("goes from page to page", async () => {
    const pages: (string | undefined)[][] = [];
    for (let offset: string | null = "0"; offset !== null;) {
      const { body, headers } = await search({ limit: 2, offset: Number(offset) });
      pages.push(body.map(({ run_id: id }) => id));
      expect(headers.get("x-pagination-total")).toBe("5");
      offset = headers.get("x-pagination-next");
    }
    expect(pages).toEqual([at(3, 4), at(1, 2), at(0)]);
    const beyond = await search({ offset: 100 });
    expect([beyond.body, beyond.headers.get("x-pagination-next")]).toEqual([[], null]);
  });

  test("returns the selected fields", async () => {
    const { body } = await search({ select: ["run_id", "status"], limit: 1 });
    expect(body).toEqual([{ run_id: runs[4]!.run_id, status: "error" }]);
  });

  test.each([
    [{ status: "lost" }, "status"],
    [{ limit: 1_001 }, "limit"],
    [{ created_after: "yesterday" }, "created_after"],
    [{ created_before: 7 }, "created_before"],
    [{ sort_by: "status" }, "sort_by"],
    [{ select: ["kwargs"] }, "select"],
    [{ thread_id: "mine" }, "thread_id"],
    [{ run_id: "mine" }, "run_id"],
    [{ metadata: { text: "\u0000" } }, "metadata"],
    [{ graph_id: "\ud800" }, "graph_id"],
  ])("refuses %j", async (body, field) => {
    const answer = await api.post<Refusal>("/runs/search", body);
    expect([answer.status, answer.body.detail]).toEqual([422, expect.stringContaining(`'${field}`)]);
  });

  test("is documented in the API's description", async () => {
    const { body } = await api.get<{ paths: Record<string, { post: { summary: string } }> }>("/openapi.json");
    expect(body.paths["/runs/search"]?.post.summary).toBe("Search runs over all threads");
  });
});

describe("a search of many runs", () => {
  /** On a thread of their own, with ids of their creation times: one second apart, long ago. */
  const insert = async (first: number, count: number, metadata: object = {}): Promise<string> => {
    const threadId = await api.aThread();
    await query(
      server,
      `insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, metadata, kwargs, multitask_strategy, created_at)
       select (lpad(to_hex(1000 * n::bigint), 12, '0') || '7000' || replace(substr($1::text, 1, 18), '-', ''))::uuid, $1::uuid,
         gen_random_uuid(), 'old', 'success', $2::jsonb, '{}', 'enqueue', to_timestamp(n)
       from generate_series($3::int, $3::int + $4::int - 1) n`,
      [threadId, JSON.stringify(metadata), first, count],
    );
    return threadId;
  };
  const planOf = async (sql: string): Promise<string> =>
    JSON.stringify(await query(server, `explain (format json) ${sql}`, []));

  test("ends a page before it fills the memory, and continues with the next", async () => {
    const threadId = await insert(1_000_000, 30, { note: "x".repeat(500_000) });
    const first = await search({ thread_id: threadId, limit: 1_000 });
    expect(first.body.length).toBeLessThan(30);
    expect(Buffer.byteLength(first.text)).toBeLessThan(6_000_000);
    expect(first.headers.get("x-pagination-next")).toBe(String(first.body.length));
    const seen = new Set(first.body.map(({ run_id: id }) => id));
    for (let next = first.headers.get("x-pagination-next"); next !== null;) {
      const page = await search({ thread_id: threadId, limit: 1_000, offset: Number(next) });
      expect(page.body.length).toBeGreaterThan(0);
      for (const { run_id: id } of page.body) seen.add(id);
      next = page.headers.get("x-pagination-next");
    }
    expect(seen.size).toBe(30);
  });

  test("returns the page even if counting the rest takes too long", async () => {
    const found = ["a", "b", "c"].map((run_id) => ({ run_id, page_rows: "3", weight_before: null }));
    const database = {
      encryption: new Encryption(undefined),
      boundedRead: (text: string) =>
        text.startsWith("select count(*)")
          ? Promise.reject(invalid("This takes longer than 2 seconds; narrow the filter."))
          : Promise.resolve(found),
    } as Partial<Database> as Database;
    const page = await createRunSearcher(database).page(EVERY_THREAD, runSearchBody.parse({ limit: 2 }));
    expect([page.rows.map((row) => row.run_id), page.next, page.total]).toEqual([["a", "b"], 2, undefined]);
  });

  test("counts only to 10,000, and finds failures and time spans by an index", async () => {
    const threadId = await insert(1, 12_000);
    await query(
      server,
      "update threadloom.runs set status = 'timeout' where thread_id = $1 and created_at = to_timestamp(7)",
      [threadId],
    );
    await query(server, "analyze threadloom.runs", []);
    const all = await search({ created_before: "1970-01-02T00:00:00Z" });
    expect(all.headers.get("x-pagination-total")).toBeNull();
    expect(all.headers.get("x-pagination-next")).toBe("10");
    const { body } = await search({
      created_after: "1970-01-01T00:00:05Z",
      created_before: "1970-01-01T00:00:10Z",
      sort_order: "asc",
    });
    expect(body.map(({ created_at: time }) => time?.slice(17, 19))).toEqual(["05", "06", "07", "08", "09"]);
    expect((await search({ status: "timeout" })).body).toMatchObject([{ thread_id: threadId }]);
    const failures =
      "select run_id from threadloom.runs where status = 'timeout' order by run_id desc limit 11";
    expect(await planOf(failures)).toContain("runs_failed");
  });
});

describe("a cursor", () => {
  /** Runs of a thread, in the order of their ids, two in each microsecond. */
  const insert = async (count: number): Promise<{ threadId: string; ids: string[] }> => {
    const threadId = await api.aThread();
    const made = await query<{ run_id: string }>(
      server,
      `insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy, created_at)
       select (lpad(to_hex(1700000000000 + n), 12, '0') || '7000' || replace(substr($1::text, 1, 18), '-', ''))::uuid, $1::uuid,
         gen_random_uuid(), 'counter', 'success', '{}', 'enqueue',
         timestamptz '2026-01-02 03:04:05.000001+00' + n / 2 * interval '1 microsecond'
       from generate_series(1, $2::int) n returning run_id`,
      [threadId, count],
    );
    return { threadId, ids: made.map(({ run_id: id }) => id) };
  };
  const remove = (id: string | undefined) =>
    query(server, "delete from threadloom.runs where run_id = $1", [id]);
  type Ask = (threadId: string, cursor: string | undefined) => Promise<Answer<Found[]>>;
  const asLists: [string, boolean, Ask][] = [
    ["a thread's runs", false, (id, cursor) => api.get(`/threads/${id}/runs?limit=3&cursor=${cursor ?? ""}`)],
    ["found runs", false, (thread_id, cursor) => search({ thread_id, limit: 3, cursor })],
    [
      "found runs, the oldest first",
      true,
      (thread_id, cursor) => search({ thread_id, limit: 3, cursor, sort_order: "asc" }),
    ],
  ];

  test.each(asLists)("continues after a page of %s, whatever was added or deleted", async (_, isUp, ask) => {
    const { threadId, ids } = await insert(17);
    const order = isUp ? ids : ids.toReversed();
    const gone = new Set([1, 2, 4, 10].map((place) => order[place]));
    const seen: (string | undefined)[] = [];
    let cursor: string | undefined;
    for (let page = 0; page === 0 || cursor !== undefined; page += 1) {
      const { status, body, headers } = await ask(threadId, cursor);
      expect([status, headers.get("x-pagination-next")]).toEqual([200, page === 0 ? "3" : null]);
      seen.push(...body.map(({ run_id: id }) => id));
      cursor = headers.get("x-pagination-cursor") ?? undefined;
      if (page === 0) {
        for (const id of gone) await remove(id);
        await api.aRun(threadId, { ...COUNT, ...LATER });
      }
    }
    const stays = (id: string | undefined): boolean => ids.includes(id ?? "") && !gone.has(id);
    expect(seen.filter(stays)).toEqual(order.filter(stays));
  });

  test("of another list is refused, and so is one with an offset", async () => {
    const { threadId } = await insert(4);
    const found = (await search({ limit: 2 })).headers.get("x-pagination-cursor");
    const listed = (await api.get(`/threads/${threadId}/runs?limit=2`)).headers.get("x-pagination-cursor");
    const refusals = await Promise.all([
      search({ cursor: listed }),
      search({ cursor: found, sort_order: "asc" }),
      search({ cursor: found, offset: 1 }),
      api.get(`/threads/${threadId}/runs?cursor=${found}`),
      api.get(`/threads/${threadId}/runs?cursor=${listed}&offset=1`),
      api.get(`/threads/${threadId}/runs?cursor=nonsense`),
    ]);
    for (const { status, text } of refusals) {
      expect([status, text]).toEqual([422, expect.stringContaining("'cursor'")]);
    }
  });

  test("is answered by the index of the runs, however many are before it", async () => {
    const { threadId } = await insert(3_000);
    await query(server, "analyze threadloom.runs", []);
    const texts: { text: string; values: unknown[] }[] = [];
    const database = {
      encryption: new Encryption(undefined),
      boundedRead: (text: string, values: unknown[]) => {
        texts.push({ text, values });
        return Promise.resolve([]);
      },
    } as Partial<Database> as Database;
    const searcher = createRunSearcher(database);
    const pages = [
      await api.get(`/threads/${threadId}/runs?limit=1000`),
      await search({ thread_id: threadId, limit: 1_000 }),
    ];
    const [listed, found] = pages.map(({ headers }) => headers.get("x-pagination-cursor") ?? "");
    await searcher.list(EVERY_THREAD, threadId, { limit: 10, offset: 0, cursor: listed });
    await searcher.page(EVERY_THREAD, runSearchBody.parse({ cursor: found }));
    const plans = await Promise.all(
      texts.map(async ({ text, values }) => {
        const plan = await query(server, `explain (analyze, format json) ${text}`, values);
        return JSON.stringify(plan);
      }),
    );
    const conditions = plans.map((plan) => /"Index Cond":"([^"]*)"/.exec(plan)?.[1]);
    expect(plans[0]).toContain("runs_by_thread");
    expect(conditions[0]).toMatch(/^\(\(thread_id = .*\) AND \(.*created_at.* <= /);
    expect(plans[1]).toContain("runs_pkey");
    expect(conditions[1]).toMatch(/^\(run_id < /);
  });
});

describe("the list of a thread's runs", () => {
  test("ends a page early when the runs are large, and names the start of the next one", async () => {
    const threadId = await api.aThread();
    await query(
      server,
      `insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy)
       select gen_random_uuid(), $1, gen_random_uuid(), 'counter', 'success',
         json_build_object('input', repeat('x', 1000000)), 'enqueue' from generate_series(1, 20)`,
      [threadId],
    );
    const seen = new Set<string>();
    const counts: number[] = [];
    for (let offset: string | null = "0"; offset !== null;) {
      const page: Answer<RunRecord[]> = await api.get<RunRecord[]>(
        `/threads/${threadId}/runs?limit=1000&offset=${offset}`,
      );
      counts.push(page.body.length);
      for (const { run_id: id } of page.body) seen.add(id);
      offset = page.headers.get("x-pagination-next");
    }
    expect([counts, seen.size]).toEqual([[17, 3], 20]);
    const { body } = await api.get<RunRecord[]>(`/threads/${threadId}/runs?limit=2&offset=1`);
    expect(body).toHaveLength(2);
  });
});
