import { afterAll, beforeAll, expect, test } from "vitest";
import type { Authorize } from "../../../src/access/authorize.ts";
import type { SummaryAnswer } from "../../../src/api/runs/summary.ts";
import { hashOf, idOf, makeKey } from "../../../src/access/keys/key-text.ts";
import { createSummaryService } from "../../../src/api/runs/summary.ts";
import type { Database } from "../../../src/platform/database/database.ts";
import { authorize, caller, ownedBy } from "../../helpers/access.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { explainingDatabase } from "../../helpers/explaining.ts";
import { eventually } from "../../helpers/conditions.ts";
import { onServer } from "../../helpers/servers.ts";
import { query } from "../../helpers/query.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";
import type { Api } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";

const MS_PER_HOUR = 3_600_000;
const NONE = { pending: 0, running: 0, success: 0, error: 0, timeout: 0, interrupted: 0 };

interface Runs {
  graph: string;
  status: string;
  hoursAgo: number;
  number?: number;
  seconds?: number;
  owner?: string;
}

const INSERT = `with aged as (
    select now() - make_interval(hours => $3::int, secs => n / 1000.0) as at from generate_series(1, $4::int) n),
  named as (select at, gen_random_uuid() as thread_id,
    (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || substr(md5(random()::text), 1, 19))::uuid as run_id
    from aged),
  thread as (insert into threadloom.threads (thread_id, metadata)
    select thread_id, jsonb_build_object('owner', $6::text) from named)
  insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy,
    created_at, started_at, updated_at)
  select run_id, thread_id, gen_random_uuid(), $1, $2, '{}', 'enqueue', at, case when $5::int is null then null else at end,
    at + make_interval(secs => coalesce($5::int, 0)) from named`;
const valuesOf = ({ graph, status, hoursAgo, number = 1, seconds, owner }: Runs): unknown[] => [
  graph,
  status,
  hoursAgo,
  number,
  seconds ?? null,
  owner ?? null,
];

let server: TestServer;
let api: Api;
onServer({}, (opened) => {
  ({ server, api } = opened);
});

const insert = (runs: Runs) => query(server, INSERT, valuesOf(runs));
const summary = async (asked: string): Promise<SummaryAnswer> =>
  (await api.get<SummaryAnswer>(`/runs/summary?${asked}`)).body;

test("runs are counted by status, for each hour and for each graph, with the durations of the ended ones", async () => {
  await query(server, "delete from threadloom.runs", []);
  for (const seconds of [1, 2, 3]) await insert({ graph: "slow", status: "success", hoursAgo: 0, seconds });
  await insert({ graph: "slow", status: "error", hoursAgo: 2, seconds: 10 });
  await insert({ graph: "waiting", status: "pending", hoursAgo: 2 });
  await insert({ graph: "slow", status: "success", hoursAgo: 30, seconds: 1 });
  const { hours, graphs, is_complete, from, to } = await summary("hours=24");
  expect(Date.parse(to) - Date.parse(from)).toBe(24 * MS_PER_HOUR);
  expect([hours.length, hours[0]?.hour, is_complete]).toEqual([24, from, true]);
  expect(hours.at(-1)).toMatchObject({ ...NONE, success: 3 });
  expect(hours.at(-3)).toMatchObject({ ...NONE, error: 1, pending: 1 });
  expect(graphs).toEqual([
    { graph_id: "slow", ...NONE, success: 3, error: 1, median_ms: 2_500, p95_ms: expect.closeTo(8_950) },
    { graph_id: "waiting", ...NONE, pending: 1, median_ms: null, p95_ms: null },
  ]);
});

test("more than a day is summed over its days, and 24 hours are the default", async () => {
  await query(server, "delete from threadloom.runs", []);
  for (const hoursAgo of [0, 30, 60, 167])
    await insert({ graph: "constructor", status: "success", hoursAgo });
  const week = await summary("hours=168");
  expect(week.hours).toHaveLength(168);
  expect(week.hours.filter(({ success }) => success === 1)).toHaveLength(4);
  expect(week.graphs).toMatchObject([{ graph_id: "constructor", success: 4 }]);
  expect((await summary("")).graphs).toMatchObject([{ success: 1 }]);
  expect((await summary("hours=")).hours).toHaveLength(24);
});

test("an answer has at most 500 graphs, and says that there are more", async () => {
  await query(server, "delete from threadloom.runs", []);
  await insert({ graph: "many", status: "success", hoursAgo: 1, number: 600 });
  const all = await summary("hours=2");
  expect([all.graphs.length, all.is_complete]).toEqual([1, true]);
  await query(server, "update threadloom.runs set graph_id = run_id::text", []);
  const cut = await summary("hours=2");
  expect([cut.graphs.length, cut.is_complete, cut.hours[0]?.success]).toEqual([500, false, 600]);
});

test.each(["hours=0", "hours=169", "hours=1.5", "hours=constructor", "hours=1&hours=2", "hours=%00"])(
  "'%s' is refused",
  async (asked) => {
    const { status, text } = await api.get(`/runs/summary?${asked}`);
    expect([status, text]).toEqual([422, expect.stringContaining("hours")]);
  },
);

/** Rows of the last day, among others. All rows take about 3,000 blocks. */
const ROWS = 40_000;
const DAYS = 40;
let fresh: FreshDatabase;
let database: Database;
beforeAll(async () => {
  fresh = await freshDatabase();
  database = openTestDatabase(fresh.connectionString);
  const runs = { graph: "test", status: "success", seconds: 1, owner: "them" };
  for (let day = 0; day < DAYS; day += 1)
    await database.query(INSERT, valuesOf({ ...runs, hoursAgo: day * 24 + 2, number: ROWS / DAYS }));
  await database.query(INSERT, valuesOf({ ...runs, hoursAgo: 0, owner: "ann" }));
  await database.query("vacuum analyze");
});
afterAll(async () => {
  await database.close();
  await fresh.drop();
});

const annsOnly: Authorize = async (_by, resource, _action, value) => ownedBy(resource, "ann", value);

test("a user sees the runs of the threads that the user may see", async () => {
  const { graphs, hours } = await createSummaryService(annsOnly, database).sums(caller("ann"), 168);
  expect(graphs).toMatchObject([{ graph_id: "test", success: 1, median_ms: 1_000 }]);
  expect(hours.reduce((sum, { success }) => sum + success, 0)).toBe(1);
});

test("runs of other days are not read", async () => {
  const { explaining, blocks } = explainingDatabase(database);
  await createSummaryService(authorize, explaining).sums(caller("ann"));
  const read = blocks();
  expect(read).toBeGreaterThan(0);
  expect(read).toBeLessThan(400);
});

test("an API key of the scope `read` suffices", async () => {
  const key = makeKey();
  await query(
    server,
    "insert into threadloom.api_keys (key_id, key_hash, name, scopes) values ($1, $2, 'read', '{read}')",
    [idOf(hashOf(key)), hashOf(key)],
  );
  const statusWith = async (headers: Record<string, string>): Promise<number> =>
    (await fetch(`${server.url}/runs/summary`, { headers })).status;
  await eventually("the server asks for a key", async () => (await statusWith({})) === 401);
  expect(await statusWith({ "x-api-key": key })).toBe(200);
});
