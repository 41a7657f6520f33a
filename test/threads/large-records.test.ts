import { afterAll, beforeAll, expect, it } from "vitest";
import { createThreadSearcher, type RowPage, type RowSearch } from "../../src/threads/search/search.ts";
import { openThreadsRoom, type Thread, type ThreadsRoom } from "./threads-room.ts";

const MEGABYTE = 1_000_000;
const THREADS = 20;
/** With the seventeenth of a megabyte a page has its 16 MiB. */
const ON_A_PAGE = 17;

let room: ThreadsRoom;
/** The newest first. */
let ids: string[];
beforeAll(async () => {
  room = await openThreadsRoom();
  const rows = await room.database.query<{ thread_id: string }>(
    `with made as (
       insert into threadloom.threads (thread_id, metadata, created_at)
       select gen_random_uuid(), jsonb_build_object('kind', 'large', 'text', repeat('x', $1)),
         now() - number * interval '1 second'
       from generate_series(1, $2) as number returning thread_id, created_at)
     select thread_id from made order by created_at desc`,
    [MEGABYTE, THREADS],
  );
  ids = rows.map(({ thread_id: id }) => id);
});
afterAll(() => room.close());

const pageOf = (filter: Partial<RowSearch>, limit: number, offset = 0): Promise<RowPage> =>
  createThreadSearcher(room.database).page({
    metadata: undefined,
    status: undefined,
    ...filter,
    limit,
    offset,
    sortBy: "created_at",
    sortOrder: "desc",
  });
const idsOf = (rows: readonly { thread_id: string }[]): string[] => rows.map(({ thread_id: id }) => id);

it.each<[string, Partial<RowSearch>]>([
  ["all", {}],
  ["those that match", { metadata: { kind: "large" } }],
])("reads no more of large threads than a page has room for: %s", async (_, filter) => {
  const first = await pageOf(filter, THREADS);
  expect([idsOf(first.rows), first.total]).toEqual([ids.slice(0, ON_A_PAGE), THREADS]);
  const last = await pageOf(filter, THREADS, ON_A_PAGE);
  expect([idsOf(last.rows), last.total]).toEqual([ids.slice(ON_A_PAGE), THREADS]);
});

it("reads no more of threads that were looked for by values than a page has room for", async () => {
  const rows = await createThreadSearcher(room.database).records(ids);
  expect(idsOf(rows)).toEqual(ids.slice(0, ON_A_PAGE));
});

it("says in the answer where the next page begins", async () => {
  const { body, headers } = await room.request<Thread[]>("POST", "/threads/search", { limit: THREADS });
  expect(idsOf(body)).toEqual(ids.slice(0, ON_A_PAGE));
  expect([headers["x-pagination-next"], headers["x-pagination-total"]]).toEqual([
    String(ON_A_PAGE),
    String(THREADS),
  ]);
});
