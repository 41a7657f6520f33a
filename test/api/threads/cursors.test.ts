import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { pino } from "pino";
import { createRunEnds } from "../../../src/engine/queue/ending.ts";
import { createReadRoom } from "../../../src/http/large-answers.ts";
import { createTimeSlicer } from "../../../src/platform/lib/time-slicer.ts";
import { createThreadPages } from "../../../src/api/threads/search/pages.ts";
import { createThreadSearcher } from "../../../src/api/threads/search/search.ts";
import { threadSearchBody, type ThreadSearch } from "../../../src/api/threads/schemas.ts";
import { createThreadService } from "../../../src/api/threads/service.ts";
import { authorize, caller, ownersOnly } from "../../helpers/access.ts";
import { openThreadsRoom, type Answer, type Thread, type ThreadsRoom } from "./threads-room.ts";

const SORT_KEYS = ["thread_id", "created_at", "updated_at", "state_updated_at"] as const;

let room: ThreadsRoom;
beforeAll(async () => {
  room = await openThreadsRoom();
});
afterAll(() => room.close());

const search = (body: Record<string, unknown> = {}) =>
  room.request<Thread[]>("POST", "/threads/search", body);
const cursorOf = ({ headers }: Answer): string | undefined =>
  headers["x-pagination-cursor"] as string | undefined;

/** Threads of a group of their own; for many of them only the id makes the order unique. */
const makeGroup = async (group: string): Promise<void> => {
  await room.database.query(
    `insert into threadloom.threads (thread_id, metadata, status, created_at, updated_at, state_updated_at)
     select gen_random_uuid(), jsonb_build_object('group', $1::text, 'fate', (array['stays', 'changes', 'goes'])[1 + n % 3]),
       (array['idle', 'interrupted', 'error'])[1 + n % 5 % 3],
       at, at + n % 7 * interval '11 minutes', at + n % 4 * interval '7 minutes'
     from generate_series(1, 45) n, lateral (
       select timestamptz '2026-01-02 03:04:05.123456+00' + n / 6 * interval '1 microsecond' as at) times`,
    [group],
  );
};

const change = async (group: string, round: number): Promise<void> => {
  const one = (fate: string, order: string): string =>
    `(select thread_id from threadloom.threads where metadata @> jsonb_build_object('group', $1::text, 'fate', '${fate}')
      order by created_at ${order}, thread_id limit 1)`;
  const order = round % 2 === 0 ? "asc" : "desc";
  await room.database.query(`delete from threadloom.threads where thread_id = ${one("goes", order)}`, [
    group,
  ]);
  await room.database.query(
    `update threadloom.threads set updated_at = now(), state_updated_at = now(), status = 'error'
     where thread_id = ${one("changes", order)}`,
    [group],
  );
  await room.aThread({ metadata: { group, fate: "comes" } });
};

describe("a list read with cursors while threads are created, changed and deleted", () => {
  const cases = SORT_KEYS.flatMap((key) => (["asc", "desc"] as const).map((order) => [key, order] as const));
  test.each(cases)("by %s, %s: contains every unchanged thread once", async (key, order) => {
    for (const filter of [{}, { status: "interrupted" }]) {
      const group = `${key} ${order} ${JSON.stringify(filter)}`;
      await makeGroup(group);
      const asked = { ...filter, metadata: { group }, sort_by: key, sort_order: order };
      const expected = (await search({ ...asked, limit: 100 })).body.filter(
        ({ metadata }) => metadata.fate === "stays",
      );
      expect(expected.length).toBeGreaterThan(4);
      const seen: Thread[] = [];
      let cursor: string | undefined;
      for (let round = 0; round === 0 || cursor !== undefined; round += 1) {
        const page = await search({ ...asked, limit: 4, cursor });
        expect(page.status).toBe(200);
        seen.push(...page.body);
        cursor = cursorOf(page);
        if (round < 12) await change(group, round);
      }
      expect(seen.filter(({ metadata }) => metadata.fate === "stays")).toEqual(expected);
    }
  });

  test("works without a filter, where no other threads are counted or sorted", async () => {
    await room.database.query("delete from threadloom.threads");
    const group = "alone";
    await makeGroup(group);
    for (const key of SORT_KEYS) {
      const expected = (await search({ sort_by: key, limit: 1_000 })).body.filter(
        ({ metadata }) => metadata.fate === "stays",
      );
      const seen: Thread[] = [];
      let cursor: string | undefined;
      for (let round = 0; round === 0 || cursor !== undefined; round += 1) {
        const page = await search({ sort_by: key, limit: 4, cursor });
        seen.push(...page.body);
        cursor = cursorOf(page);
        if (round < 2) await change(group, round);
      }
      expect(seen.filter(({ metadata }) => metadata.fate === "stays")).toEqual(expected);
    }
  });

  test("works by values, whose threads may all be deleted before they are read", async () => {
    for (const count of [3, 3, 3, 4, 3]) {
      const { thread_id: id } = await room.aThread({ metadata: { group: "values" } });
      await room.run("counter", id, { count });
    }
    const asked = { metadata: { group: "values" }, values: { count: 4 }, limit: 1, sort_order: "asc" };
    const all = (await search({ ...asked, limit: 10 })).body;
    expect(all).toHaveLength(4);
    const first = await search(asked);
    await room.request("DELETE", `/threads/${all[1]?.thread_id}`);
    const second = await search({ ...asked, cursor: cursorOf(first) });
    const third = await search({ ...asked, cursor: cursorOf(second) });
    expect([first, second, third].flatMap(({ body }) => body)).toEqual([all[0], all[2], all[3]]);
    expect(cursorOf(third)).toBeUndefined();
  });

  test("works by values, while a thread changes between its match and its page", async () => {
    const ids: string[] = [];
    for (let count = 0; count < 5; count += 1)
      ids.unshift((await room.aThread({ metadata: { group: "touched" } })).thread_id);
    let touches = 0;
    const searcher = createThreadSearcher(room.database);
    const pages = createThreadPages({
      ...{ authorize, readRoom: createReadRoom(), slicer: createTimeSlicer(1_000) },
      searcher: {
        ...searcher,
        candidates: async (...search) =>
          (await searcher.candidates(...search))?.map((candidate) => ({ ...candidate, untouched: false })),
      },
      async *valuesOf(_, rows) {
        for (const { thread_id } of rows) yield [thread_id, '{"matches":true}'] as const;
        if (touches++ > 0) return;
        const touch = "update threadloom.threads set updated_at = now() where thread_id = $1";
        await room.database.query(touch, [ids[2]]);
      },
    });
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const asked = {
        ...{ metadata: { group: "touched" }, values: { matches: true }, select: ["thread_id"] },
        ...{ sort_by: "updated_at", limit: 3, cursor },
      };
      const page = await pages.page(caller("me"), threadSearchBody.parse(asked));
      seen.push(...(JSON.parse(page.text) as Thread[]).map(({ thread_id }) => thread_id));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(seen).toEqual(ids);
  });
});

describe("a cursor", () => {
  let next: string;
  beforeAll(async () => {
    await makeGroup("given");
    next = cursorOf(await search({ limit: 2 })) ?? "";
  });

  test("is accepted at a thread from before 1970, as an import may create", async () => {
    for (let threads = 0; threads < 2; threads += 1) {
      const { thread_id: id } = await room.aThread({ metadata: { group: "old" } });
      await room.database.query(
        "update threadloom.threads set created_at = '1969-12-31 23:59:59.999999' where thread_id = $1",
        [id],
      );
    }
    const asked = { metadata: { group: "old" }, sort_by: "created_at", limit: 1 };
    const first = await search(asked);
    const second = await search({ ...asked, cursor: cursorOf(first) });
    expect(new Set([...first.body, ...second.body].map(({ thread_id: id }) => id)).size).toBe(2);
  });

  test("comes with every page but the last, also with an offset; pages after it have no total", async () => {
    const asked = { metadata: { group: "given" }, limit: 15 };
    const second = await search({ ...asked, offset: 15 });
    expect(second.headers).toMatchObject({ "x-pagination-total": "45", "x-pagination-next": "30" });
    const third = await search({ ...asked, cursor: cursorOf(second) });
    expect(third.body).toEqual((await search({ ...asked, offset: 30 })).body);
    for (const header of ["cursor", "next", "total"])
      expect(third.headers).not.toHaveProperty(`x-pagination-${header}`);
    expect((await search({ ...asked, cursor: null })).body).toEqual((await search(asked)).body);
  });

  test.each<[string, () => Record<string, unknown>, string]>([
    ["in another order", () => ({ cursor: next, sort_order: "asc" }), "X-Pagination-Cursor"],
    ["of another key", () => ({ cursor: next, sort_by: "updated_at" }), "X-Pagination-Cursor"],
    ["with an offset", () => ({ cursor: next, offset: 2 }), "'offset'"],
    ["that was cut", () => ({ cursor: next.slice(0, -3) }), "X-Pagination-Cursor"],
    ["that is nothing", () => ({ cursor: "" }), "X-Pagination-Cursor"],
    ["that is any text", () => ({ cursor: "'; drop table" }), "X-Pagination-Cursor"],
    ["that is too long", () => ({ cursor: "x".repeat(501) }), "500"],
    ["that is no text", () => ({ cursor: 2 }), "string"],
    [
      "that was written by hand",
      () => ({ cursor: Buffer.from('["threads created_at desc","soon","me"]').toString("base64url") }),
      "X-Pagination-Cursor",
    ],
    [
      "of a time that no database knows",
      () => ({
        cursor: Buffer.from(
          JSON.stringify(["threads created_at desc", "9".repeat(18), "0".repeat(8)]),
        ).toString("base64url"),
      }),
      "X-Pagination-Cursor",
    ],
  ])("%s is refused in one sentence", async (_, body, words) => {
    const answer = await room.request<{ detail: string }>("POST", "/threads/search", body());
    expect(answer.status).toBe(422);
    expect(answer.body.detail).toMatch(/^'cursor[^\n]*\.$/);
    expect(answer.body.detail).toContain(words);
  });

  test("does not come with an order by status", async () => {
    const byStatus = await search({ sort_by: "status", limit: 2 });
    expect(byStatus.headers).toMatchObject({ "x-pagination-next": "2" });
    expect(cursorOf(byStatus)).toBeUndefined();
    expect((await search({ sort_by: "status", cursor: next })).status).toBe(422);
  });

  test("of the latest possible time finds the threads after it", async () => {
    const write = (keys: string[]) => Buffer.from(JSON.stringify(keys)).toString("base64url");
    const id = "ffffffff-ffff-ffff-ffff-ffffffffffff";
    const latest = write(["threads created_at desc", "9".repeat(17), id]);
    expect((await search({ cursor: latest })).body).toEqual((await search()).body);
  });

  test("of one caller shows another caller only their own threads", async () => {
    const { database, checkpoints, graphs } = room;
    const service = createThreadService({
      ...{ database, checkpoints, graphs, authorize: ownersOnly },
      ends: createRunEnds(database, checkpoints),
      logger: pino({ level: "silent" }),
    });
    for (let count = 0; count < 4; count += 1)
      for (const owner of ["me", "them"]) await room.aThread({ metadata: { owner } });
    const owners = async (id: string, asked: Partial<ThreadSearch>) => {
      const page = await service.search.page(
        caller(id),
        threadSearchBody.parse({ limit: 2, sort_by: "updated_at", ...asked }),
      );
      const found = JSON.parse(page.text) as Thread[];
      return { found: found.map(({ metadata }) => metadata.owner), cursor: page.cursor };
    };
    const mine = await owners("me", {});
    expect(mine.found).toEqual(["me", "me"]);
    const theirs = await owners("them", { cursor: mine.cursor, limit: 100 });
    expect(new Set(theirs.found)).toEqual(new Set(["them"]));
    expect((await owners("me", { cursor: mine.cursor, limit: 100 })).found).toEqual(["me", "me"]);
  });
});
