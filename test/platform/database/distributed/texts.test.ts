import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { routes, shardTexts } from "../../../../src/platform/database/distributed/texts.ts";
import { partOf } from "../../../../src/platform/database/distributed/placement.ts";
import { uuidHash } from "../../../../src/platform/database/distributed/uuid-hash.ts";
import { byPart, idBeside } from "../../../../src/platform/database/queryable.ts";
import { freshDatabase, type FreshDatabase } from "../../../helpers/database.ts";
import { query } from "../../../helpers/query.ts";

let fresh: FreshDatabase;
beforeAll(async () => {
  fresh = await freshDatabase();
});
afterAll(() => fresh.drop());

test("a thread's hash is the one by which Citus places its rows", async () => {
  const ids = [
    "00000000-0000-0000-0000-000000000000",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
    ...Array.from({ length: 500 }, () => randomUUID()),
  ];
  const rows = await query<{ hash: number }>(
    fresh,
    "select uuid_hash(id) as hash from unnest($1::uuid[]) as id",
    [ids],
  );
  expect(ids.map(uuidHash)).toEqual(rows.map(({ hash }) => hash));
});

const ROUTE = routes("threadloom", ["threads", "runs", "run_events"]);

test.each([
  ["select from threadloom.assistants where assistant_id = $1", { kind: "common" }],
  [
    "select from threadloom.runs r where r.run_id = $2 and r.thread_id = $1::uuid",
    { kind: "thread", parameter: 1 },
  ],
  ['select * from "threadloom"."runs" where "thread_id" = $3', { kind: "thread", parameter: 3 }],
  ["delete from threadloom.threads where thread_id = any($2::uuid[])", { kind: "threads", parameter: 2 }],
  ["select from threadloom.runs r where not r.thread_id = any($1::uuid[])", { kind: "every part" }],
  ["select count(*) from threadloom.runs", { kind: "every part" }],
  ["insert into threadloom.threads (thread_id) select $1::uuid", { kind: "insert" }],
  ["select from threadloom.runs_of_others", { kind: "common" }],
])("a statement goes where its threads are: %s", (text, route) => {
  expect(ROUTE(text)).toEqual(route);
});

test("a statement for a part names the part's shards, also before columns and between quotes", () => {
  const text = shardTexts("mine", {
    runs: "runs_7",
    run_events: "run_events_8",
    assistants: "copy_of_assistants_9",
  });
  expect(text("select runs.run_id, r.runs from threadloom.runs join threadloom.assistants a using (x)")).toBe(
    'select "runs_7".run_id, r.runs from "mine"."runs_7" join "mine"."copy_of_assistants_9" a using (x)',
  );
  expect(text('select "runs"."run_id" from "mine"."runs", threadloom.run_events e, threadloom.workers')).toBe(
    'select "runs_7"."run_id" from "mine"."runs_7", "mine"."run_events_8" e, threadloom.workers',
  );
});

test("every thread has one part, and its hash lies in the part's range", () => {
  const froms = [-(2 ** 31), -(2 ** 30), 0, 2 ** 30];
  const parts = froms.map((from) => ({ from, tables: {}, shardIds: [], node: "" }));
  for (let count = 0; count < 500; count += 1) {
    const id = randomUUID();
    const part = partOf({ parts, ofThreads: [] }, id);
    expect(froms.filter((from) => from <= uuidHash(id))).toHaveLength(part + 1);
  }
});

test("rows of several threads are stored part by part; without distribution together", () => {
  const items = ["a", "b", "c"];
  const parts = byPart({ partOf: (threadId) => (threadId === "b" ? 1 : 0) }, items, (item) => item);
  expect(parts).toEqual([["a", "c"], ["b"]]);
  expect(byPart({}, items, (item) => item)).toEqual([items]);
  expect(byPart({}, [], String)).toEqual([]);
});

test("a copy of a thread is in the part of its original", () => {
  const partOf = (threadId: string) => uuidHash(threadId) & 7;
  const original = randomUUID();
  const copies = Array.from({ length: 20 }, () => idBeside({ partOf }, original));
  expect(new Set(copies.map(partOf))).toEqual(new Set([partOf(original)]));
  expect(new Set(copies).size).toBe(20);
});
