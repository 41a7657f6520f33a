import { afterAll, beforeAll, expect, it } from "vitest";
import {
  createThreadSearcher,
  type RowPage,
  type RowSearch,
} from "../../../src/api/threads/search/search.ts";
import { EVERY_THREAD } from "../../helpers/access.ts";
import { openThreadsRoom, type Thread, type ThreadsRoom } from "./threads-room.ts";

const MEGABYTE = 1_000_000;
const THREADS = 20;
/** The seventeenth thread of a megabyte fills a page of 16 MiB. */
const ON_A_PAGE = 17;

let room: ThreadsRoom;
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
  createThreadSearcher(room.database).page(EVERY_THREAD, {
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
])("reads only as many large threads as a page has room for: %s", async (_, filter) => {
  const first = await pageOf(filter, THREADS);
  expect([idsOf(first.rows), first.total]).toEqual([ids.slice(0, ON_A_PAGE), THREADS]);
  const last = await pageOf(filter, THREADS, ON_A_PAGE);
  expect([idsOf(last.rows), last.total]).toEqual([ids.slice(ON_A_PAGE), THREADS]);
});

it("reads only as many threads of a search by values as a page has room for", async () => {
  const { rows } = await pageOf({ ids }, THREADS);
  expect(idsOf(rows)).toEqual(ids.slice(0, ON_A_PAGE));
});

it("names the start of the next page in the answer", async () => {
  const { body, headers } = await room.request<Thread[]>("POST", "/threads/search", { limit: THREADS });
  expect(idsOf(body)).toEqual(ids.slice(0, ON_A_PAGE));
  expect([headers["x-pagination-next"], headers["x-pagination-total"]]).toEqual([
    String(ON_A_PAGE),
    String(THREADS),
  ]);
  const rest = { limit: THREADS, cursor: headers["x-pagination-cursor"] };
  expect(idsOf((await room.request<Thread[]>("POST", "/threads/search", rest)).body)).toEqual(
    ids.slice(ON_A_PAGE),
  );
});

it("measures fields that it does not return", async () => {
  const search = { limit: THREADS, select: ["thread_id"], extract: { kind: "metadata.kind" } };
  const { body } = await room.request<Thread[]>("POST", "/threads/search", search);
  expect(body).toEqual(
    ids.slice(0, ON_A_PAGE).map((thread_id) => ({ thread_id, extracted: { kind: "large" } })),
  );
});

it("returns the values of threads if no large field is selected", async () => {
  const { thread_id: id } = await room.aThread({ metadata: { kind: "small" } });
  await room.run("counter", id, { count: 3 });
  const search = { ids: [id], select: ["values"] };
  const { body } = await room.request<Thread[]>("POST", "/threads/search", search);
  expect(body).toEqual([{ values: expect.objectContaining({ count: 4 }) }]);
});
