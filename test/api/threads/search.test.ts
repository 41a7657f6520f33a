import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { pino } from "pino";
import { createCheckpointStorage } from "../../../src/state/checkpoints/storage.ts";
import { createRunEnds } from "../../../src/engine/queue/ending.ts";
import { createThreadSearcher } from "../../../src/api/threads/search/search.ts";
import { threadSearchBody } from "../../../src/api/threads/schemas.ts";
import { ANONYMOUS } from "../../../src/access/caller.ts";
import { createThreadService } from "../../../src/api/threads/service.ts";
import { authorize, EVERY_THREAD } from "../../helpers/access.ts";
import { openThreadsRoom, type Thread, type ThreadsRoom } from "./threads-room.ts";

let room: ThreadsRoom;
let threads: Thread[];

const STATUSES = ["idle", "busy", "interrupted", "error"];

beforeAll(async () => {
  room = await openThreadsRoom();
  threads = [];
  for (let index = 0; index < 24; index += 1) {
    threads.push(
      await room.aThread({
        metadata: {
          index,
          user: `user ${index % 3}`,
          tags: ["all", index % 2 === 0 ? "even" : "odd"],
          deep: { index },
        },
      }),
    );
  }
  // No two in one millisecond, the precision of shown times.
  await room.database.query(
    `update threadloom.threads set created_at =
       date_trunc('milliseconds', created_at) + (metadata ->> 'index')::int * interval '1 millisecond'`,
  );
  // A different order for every sort key, with some equal keys.
  await room.database.query(
    `update threadloom.threads set
       status = ($2::text[])[1 + (metadata ->> 'index')::int % 4],
       updated_at = created_at + ((metadata ->> 'index')::int % 5) * interval '1 hour',
       state_updated_at = created_at - (metadata ->> 'index')::int * interval '1 minute'
     where thread_id = any($1::uuid[])`,
    [threads.map((thread) => thread.thread_id), STATUSES],
  );
  // A thread is busy as long as it has unfinished runs.
  await room.database.query(
    `insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy)
     select gen_random_uuid(), thread_id, gen_random_uuid(), 'none',
       case when (metadata ->> 'index')::int % 8 = 1 then 'pending' else 'running' end, '{}', 'enqueue'
     from threadloom.threads where status = 'busy'`,
  );
  threads = await Promise.all(
    threads.map(async ({ thread_id: id }) => (await room.request<Thread>("GET", `/threads/${id}`)).body),
  );
});
afterAll(() => room.close());

const search = (body: Record<string, unknown> = {}) =>
  room.request<Thread[]>("POST", "/threads/search", body);
const indexes = (found: Thread[]) => found.map((thread) => thread.metadata.index);

describe("searching threads", () => {
  it("lists the newest ten of all threads without a filter, with the total", async () => {
    const { body, headers } = await search();
    expect(body).toEqual([...threads].reverse().slice(0, 10));
    expect(headers["x-pagination-total"]).toBe("24");
    expect(headers["x-pagination-next"]).toBe("10");
  });

  it.each([
    ["all", {}],
    ["those of one user", { metadata: { user: "user 1" } }],
    ["those of one status", { status: "idle" }],
    ["some ids", { ids: "first five" }],
  ])(
    "pages through %s: every thread once, the true total on each page, no next page on the last",
    async (_, given) => {
      const filter =
        "ids" in given ? { ids: threads.slice(0, 5).map((thread) => thread.thread_id) } : (given as object);
      const all = (await search({ ...filter, limit: 1000 })).body;
      for (const limit of [1, 3, 4, all.length, all.length + 1]) {
        const seen: Thread[] = [];
        for (let offset: number | undefined = 0; offset !== undefined;) {
          const { body, headers } = await search({ ...filter, limit, offset });
          expect(headers["x-pagination-total"]).toBe(String(all.length));
          seen.push(...body);
          const next = headers["x-pagination-next"];
          offset = next === undefined ? undefined : Number(next);
        }
        expect(seen).toEqual(all);
      }
      const beyond = await search({ ...filter, offset: 100 });
      expect([beyond.body, beyond.headers["x-pagination-total"]]).toEqual([[], String(all.length)]);
      expect(beyond.headers).not.toHaveProperty("x-pagination-next");
    },
  );

  it.each(["thread_id", "status", "created_at", "updated_at", "state_updated_at"] as const)(
    "sorts by %s in both directions, equal ones by id; the largest offset is past the end",
    async (key) => {
      expect((await search({ sort_by: key, offset: 2_147_483_647 })).body).toEqual([]);
      const ascending = [...threads].sort((one, other) =>
        one[key] === other[key] ? (one.thread_id < other.thread_id ? -1 : 1) : one[key] < other[key] ? -1 : 1,
      );
      for (const filter of [{}, { metadata: { tags: ["all"] } }]) {
        const up = await search({ ...filter, sort_by: key, sort_order: "asc", limit: 100 });
        expect(indexes(up.body)).toEqual(indexes(ascending));
        const down = await search({ ...filter, sort_by: key, sort_order: "desc", limit: 100 });
        expect(indexes(down.body)).toEqual(indexes([...ascending].reverse()));
      }
    },
  );

  it("finds metadata by containment, at any depth and in lists", async () => {
    expect(indexes((await search({ metadata: { deep: { index: 7 } } })).body)).toEqual([7]);
    const even = await search({ metadata: { tags: ["even"], user: "user 0" }, sort_order: "asc" });
    expect(indexes(even.body)).toEqual([0, 6, 12, 18]);
    expect((await search({ metadata: { tags: "even" } })).body).toEqual([]);
  });

  it("treats text that looks like SQL as text", async () => {
    const hostile = "'; drop table threads; --";
    const { thread_id: id } = await room.aThread({ metadata: { [hostile]: hostile } });
    const { body } = await search({ metadata: { [hostile]: hostile } });
    expect(body.map((thread) => thread.thread_id)).toEqual([id]);
    await room.request("DELETE", `/threads/${id}`);
    expect((await search({ sort_by: hostile })).status).toBe(422);
    expect((await search({ select: [hostile] })).status).toBe(422);
  });

  it("returns only the selected fields", async () => {
    const { body } = await search({ select: ["thread_id", "status"], limit: 1, sort_order: "asc" });
    expect(body).toEqual([{ thread_id: threads[0]?.thread_id, status: threads[0]?.status }]);
  });

  it.each([
    ["limit", { limit: 0 }],
    ["limit", { limit: 1001 }],
    ["offset", { offset: -1 }],
    ["ids", { ids: ["abc"] }],
    ["status", { status: "sleeping" }],
    ["metadata", { metadata: "abc" }],
    ["extract.first", { extract: { first: "messages[0]" } }],
    ["extract.first", { extract: { first: "values..x" } }],
    ["extract.first", { extract: { first: "metadata.a[b]" } }],
    ["extract", { extract: Object.fromEntries(Array.from({ length: 11 }, (_, i) => [`a${i}`, "metadata"])) }],
  ])("names the invalid field %s of a search", async (field, body) => {
    const answer = await room.request<{ detail: string }>("POST", "/threads/search", body);
    expect(answer.status).toBe(422);
    expect(answer.body.detail).toContain(field);
  });

  it("counts the matching threads", async () => {
    const count = async (body: unknown) => (await room.request<number>("POST", "/threads/count", body)).body;
    expect(await count({})).toBe(24);
    expect(await count(undefined)).toBe(24);
    expect(await count({ metadata: { user: "user 1" } })).toBe(8);
    expect(await count({ metadata: { user: "user 1" }, status: "idle" })).toBe(2);
    expect(await count({ metadata: { user: "nobody" } })).toBe(0);
  });
});

it("checks the values of threads in order, and only counts them first if they are too many", async () => {
  const searcher = createThreadSearcher(room.database);
  const order = { sortBy: "created_at", sortOrder: "desc" } as const;
  for (const filter of [{ metadata: { tags: ["all"] } }, { status: "idle" as const, metadata: undefined }]) {
    const wanted = { ...filter, status: "status" in filter ? filter.status : undefined };
    const all = (await search({ ...filter, limit: 1000, select: ["thread_id"] })).body;
    const listed = await searcher.candidates(EVERY_THREAD, { ...wanted, ...order }, all.length);
    expect(listed?.map(({ thread_id: id }) => id)).toEqual(all.map(({ thread_id: id }) => id));
    expect(await searcher.candidates(EVERY_THREAD, { ...wanted, ...order }, all.length - 1)).toBeUndefined();
  }
  const none = { metadata: { tags: ["none"] }, status: undefined };
  expect(await searcher.candidates(EVERY_THREAD, { ...none, ...order }, 5)).toEqual([]);
});

describe("searching threads with values", () => {
  const group = randomUUID();
  const runs = [
    { count: 3, messages: [{ role: "user", content: "apples" }] },
    { count: 5, messages: [{ role: "user", content: "pears" }] },
    { count: 5, messages: [{ role: "user", content: "plums" }] },
  ];

  beforeAll(async () => {
    for (const [index, input] of runs.entries()) {
      const { thread_id: id } = await room.aThread({ metadata: { group, order: index } });
      await room.run("counter", id, input);
    }
    await room.aThread({ metadata: { group, order: 3 } });
  });
  const ofGroup = { metadata: { group }, sort_order: "asc" };
  const orders = (found: Thread[]) => found.map((thread) => thread.metadata.order);

  it("returns the values of each thread's newest checkpoint, and null for one without runs", async () => {
    const { body } = await search(ofGroup);
    expect(body.map(({ values }) => values?.count ?? null)).toEqual([4, 6, 6, null]);
    expect(body[0]?.values?.messages).toMatchObject([{ type: "human", content: "apples" }]);
  });

  it("reads the values of a page in the same number of statements, however many threads it has", async () => {
    /** In a process with an empty cache. */
    const statementsOf = async (body: Record<string, unknown>): Promise<number> => {
      const { database, graphs } = room;
      const logger = pino({ level: "silent" });
      const checkpoints = createCheckpointStorage({ database, logger });
      const service = createThreadService({
        database,
        authorize,
        checkpoints,
        ends: createRunEnds(database, checkpoints),
        graphs,
        logger,
      });
      let statements = 0;
      const query = room.database.query.bind(room.database);
      room.database.query = async (text, values) => {
        statements += 1;
        return await query(text, values);
      };
      await service.search.page(ANONYMOUS, threadSearchBody.parse(body));
      room.database.query = query;
      return statements;
    };
    const one = await statementsOf({ ...ofGroup, limit: 1 });
    expect(one).toBeLessThanOrEqual(4);
    expect(await statementsOf({ ...ofGroup, limit: 3 })).toBe(one);
  });

  it("finds and counts by values, page by page", async () => {
    const fives = { ...ofGroup, values: { count: 6 } };
    const { body, headers } = await search({ ...fives, limit: 1, offset: 1 });
    expect(orders(body)).toEqual([2]);
    expect(headers["x-pagination-total"]).toBe("2");
    const inside = await search({ ...ofGroup, values: { messages: [{ content: "pears" }] } });
    expect(orders(inside.body)).toEqual([1]);
    const { body: count } = await room.request("POST", "/threads/count", {
      metadata: { group },
      values: { count: 6 },
    });
    expect(count).toBe(2);
  });

  it("extracts single values by path, null for a missing one", async () => {
    const { body } = await search({
      ...ofGroup,
      select: ["status"],
      extract: {
        last: "values.messages[-1].content",
        order: "metadata.order",
        none: 'values["no such"].key[3]',
        all: "interrupts",
      },
    });
    expect(body).toHaveLength(4);
    expect(body[1]).toEqual({
      status: "idle",
      extracted: { last: "pears", order: 1, none: null, all: {} },
    });
    expect(body[3]?.extracted).toEqual({ last: null, order: 3, none: null, all: {} });
  });
});
