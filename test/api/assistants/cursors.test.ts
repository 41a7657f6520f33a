import { beforeEach, describe, expect, test } from "vitest";
import type { Api } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { query } from "../../helpers/query.ts";
import { onServer } from "../../helpers/servers.ts";

/** Lists of assistants and of crons share the code of cursors. */

let server: TestServer;
let api: Api;
onServer({ role: "api" }, (opened) => ({ server, api } = opened));

type Item = Record<string, string | null>;
const cursorIn = (headers: Headers): string | undefined => headers.get("x-pagination-cursor") ?? undefined;

/** Of 30 records, those with a number divisible by three stay. The others are deleted or changed while a list is read. */
const LISTS = [
  {
    name: "assistants",
    path: "/assistants/search",
    id: "assistant_id",
    keys: ["assistant_id", "created_at", "updated_at"],
    insert: `insert into threadloom.assistants (assistant_id, graph_id, name, version, created_at, updated_at)
      select gen_random_uuid(), 'agent', n::text, 1, at, at + n % 7 * interval '1 microsecond' from numbers`,
  },
  {
    name: "crons",
    path: "/runs/crons/search",
    id: "cron_id",
    keys: ["cron_id", "assistant_id", "thread_id", "next_run_date", "end_time", "created_at", "updated_at"],
    insert: `insert into threadloom.crons
        (cron_id, assistant_id, thread_id, schedule, payload, enabled, next_run_date, end_time, created_at, updated_at)
      select gen_random_uuid(), assistant_id, case when n % 2 = 0 then thread_id end, n::text, '{}', true,
        case when n % 5 > 1 then at end, case n % 4 when 2 then at when 3 then timestamptz '9999-12-31 23:59:59+00' end, at, at + n % 7 * interval '1 microsecond'
      from numbers, (select assistant_id from threadloom.assistants limit 1) assistants,
        (select thread_id from threadloom.threads limit 1) threads`,
  },
] as const;

describe.each(LISTS)("$name", ({ name, path, id, keys, insert }) => {
  const number = name === "assistants" ? "name" : "schedule";
  const search = (body: object) => api.post<Item[]>(path, body);
  const stays = (item: Item): boolean => Number(item[number]) % 3 === 0;

  beforeEach(async () => {
    await api.aThread();
    await query(server, `delete from threadloom.${name}`);
    if (name === "crons") await api.post("/assistants", { graph_id: "agent" });
    await query(
      server,
      `with numbers as (select n, timestamptz '2026-01-02 03:04:05.123456+00' + n / 6 * interval '1 microsecond' as at
        from generate_series(0, 29) n) ${insert}`,
    );
  });

  test.each(keys.flatMap((key) => ["asc", "desc"].map((order) => [key, order])))(
    "sorted by %s, %s, are each listed once with a cursor, while others are changed and deleted",
    async (sort_by, sort_order) => {
      const asked = { sort_by, sort_order };
      const before = (await search({ ...asked, limit: 100 })).body;
      expect(before).toHaveLength(30);
      const gone = before.filter((item) => !stays(item)).map((item) => item[id]);
      const seen: Item[] = [];
      let cursor: string | undefined;
      for (let round = 0; round === 0 || cursor !== undefined; round += 1) {
        const page = await search({ ...asked, limit: 4, cursor });
        expect(page.status).toBe(200);
        seen.push(...page.body);
        cursor = cursorIn(page.headers);
        await query(server, `delete from threadloom.${name} where ${id} = $1`, [gone.shift()]);
        await query(server, `update threadloom.${name} set updated_at = now() where ${id} = $1`, [
          gone.at(-1),
        ]);
      }
      expect(seen.filter(stays)).toEqual(before.filter(stays));
    },
  );

  test("return a cursor with every page but the last, and no total after the first page", async () => {
    const first = await search({ limit: 20 });
    expect(first.headers.get("x-pagination-total")).toBe("30");
    const second = await search({ limit: 20, cursor: cursorIn(first.headers) });
    expect(second.body).toEqual((await search({ limit: 20, offset: 20 })).body);
    for (const header of ["cursor", "next", "total"])
      expect(second.headers.has(`x-pagination-${header}`)).toBe(false);
    expect(cursorIn((await search({ limit: 30 })).headers)).toBeUndefined();
    const selected = await search({ limit: 2, select: ["metadata"] });
    expect([selected.body, cursorIn(selected.headers)]).toEqual([
      [{ metadata: {} }, { metadata: {} }],
      expect.any(String),
    ]);
  });

  test.each([
    ["in another order", { sort_order: "asc" }, "X-Pagination-Cursor"],
    ["of another key", { sort_by: "updated_at" }, "X-Pagination-Cursor"],
    ["with an offset", { offset: 2 }, "'offset'"],
    ["that is any text", { cursor: "'; drop table" }, "X-Pagination-Cursor"],
    ...(name === "assistants" ? ([["by a name", { sort_by: "name" }, "'name'"]] as const) : []),
  ] as const)("refuse a cursor %s in one sentence", async (_, body, words) => {
    const cursor = cursorIn((await search({ limit: 2 })).headers);
    const answer = await api.post<{ detail: string }>(path, { cursor, ...body });
    expect(answer.status).toBe(422);
    expect(answer.body.detail).toMatch(/^'cursor[^\n]*\.$/);
    expect(answer.body.detail).toContain(words);
  });
});
