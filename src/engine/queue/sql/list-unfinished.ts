import type { Visibility } from "../../../access/visibility.ts";
import type { Queryable } from "../../../platform/database/database.ts";
import type { RunSelector } from "../attempts.ts";
import { runVisible } from "../run-visible.ts";

/** Index: runs_pkey. */
const named = (visible: string): string =>
  `select run_id, thread_id from threadloom.runs r
   where run_id = any($1::uuid[]) and status = any($2::text[]) and ${visible}`;

type NamedRow = Record<"run_id" | "thread_id", string>;
/** Text, because a Date would round microseconds. */
type PlaceRow = NamedRow & { created_at: string };
type PageRow = PlaceRow & { visible: boolean };

const selectorOf = (row: NamedRow): RunSelector => ({ threadId: row.thread_id, runId: row.run_id });

export const listNamed = async (
  queryable: Queryable,
  visibility: Visibility<"threads">,
  runIds: readonly string[],
  statuses: readonly string[],
): Promise<RunSelector[]> => {
  const values: unknown[] = [runIds, statuses];
  const visible = runVisible(visibility, values);
  return (await queryable.query<NamedRow>(named(visible), values)).map(selectorOf);
};

const FIRST_ID = "00000000-0000-0000-0000-000000000000";

/** The statement sorts the runs of all these threads, by default up to 100 pending runs each. */
const THREADS_AT_ONCE = 100;

/**
 * The limit is a literal, because the planner can't estimate a parameter. Hidden runs count towards it, so no
 * statement reads more than a page. Indexes: runs_pending_of_thread, runs_one_running_per_thread.
 */
const pageStatement = (
  status: "pending" | "running",
  ofThreads: boolean,
  limit: number,
  visible: string,
): string =>
  `select thread_id, created_at::text as created_at, run_id, ${visible} as visible from (
     select thread_id, created_at, run_id from threadloom.runs
     where status = '${status}' and (thread_id, created_at, run_id) > ($1::uuid, $2::timestamptz, $3::uuid)
       and created_at <= $4::timestamptz ${ofThreads ? "and thread_id = any($5::uuid[])" : ""}
     order by thread_id, created_at, run_id limit ${limit}) r
   order by thread_id, r.created_at, run_id`;

async function* pagesOf(
  queryable: Queryable,
  visibility: Visibility<"threads">,
  status: "pending" | "running",
  threadIds: readonly string[] | undefined,
  limit: number,
  before: string | undefined,
): AsyncGenerator<RunSelector[]> {
  let last: PlaceRow | undefined = { thread_id: FIRST_ID, created_at: "-infinity", run_id: FIRST_ID };
  while (last !== undefined) {
    const values: unknown[] = [last.thread_id, last.created_at, last.run_id, before];
    if (threadIds !== undefined) values.push(threadIds);
    const visible = runVisible(visibility, values);
    const rows: PageRow[] = await queryable.query<PageRow>(
      pageStatement(status, threadIds !== undefined, limit, visible),
      values,
    );
    const found = rows.filter((row) => row.visible);
    if (found.length > 0) yield found.map(selectorOf);
    last = rows.length < limit ? undefined : rows.at(-1);
  }
}

/** Ordered by thread, `limit` at a time. */
export async function* unfinishedPages(
  queryable: Queryable,
  visibility: Visibility<"threads">,
  status: "pending" | "running",
  threadIds: readonly string[] | undefined,
  limit: number,
): AsyncGenerator<RunSelector[]> {
  if (threadIds?.length === 0) return;
  const [clock] = await queryable.query<{ now: string }>("select clock_timestamp()::text as now");
  if (threadIds === undefined) yield* pagesOf(queryable, visibility, status, undefined, limit, clock?.now);
  else
    for (let start = 0; start < threadIds.length; start += THREADS_AT_ONCE) {
      const some = threadIds.slice(start, start + THREADS_AT_ONCE);
      yield* pagesOf(queryable, visibility, status, some, limit, clock?.now);
    }
}
