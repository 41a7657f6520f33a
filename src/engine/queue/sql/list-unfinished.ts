import type { Visibility } from "../../../access/visibility.ts";
import type { Database, Queryable } from "../../../platform/database/database.ts";
import { fragment, literal, statement } from "../../../platform/database/statement.ts";
import type { RunSelector } from "../attempts.ts";
import { runVisible } from "../run-visible.ts";

/** Index: runs_pkey. */
const LIST_NAMED = statement(
  { runIds: "uuid[]", statuses: "text[]", visible: "fragment" },
  (sql) => `select run_id, thread_id from threadloom.runs r
   where run_id = any(${sql.runIds}) and status = any(${sql.statuses}) and ${sql.visible}`,
);

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
  const visible = runVisible(visibility);
  return (await LIST_NAMED.query<NamedRow>(queryable, { runIds, statuses, visible })).map(selectorOf);
};

const FIRST_ID = "00000000-0000-0000-0000-000000000000";

/**
 * The limit is a literal, because the planner can't estimate a parameter. Hidden runs count too, so no
 * statement reads more than a page. Indexes: runs_pending_of_thread, runs_one_begun_per_thread.
 */
const LIST_PAGE = statement(
  {
    lastThread: "uuid",
    lastCreated: "timestamptz",
    lastRun: "uuid",
    before: "timestamptz",
    which: "fragment",
    visible: "fragment",
    limit: "fragment",
  },
  (sql) => `select thread_id, created_at::text as created_at, run_id, ${sql.visible} as visible from (
     select thread_id, created_at, run_id from threadloom.runs
     where ${sql.which} and (thread_id, created_at, run_id) > (${sql.lastThread}, ${sql.lastCreated}, ${sql.lastRun})
       and created_at <= ${sql.before}
     order by thread_id, created_at, run_id limit ${sql.limit}) r
   order by thread_id, r.created_at, run_id`,
);

async function* pagesOf(
  queryable: Queryable,
  visibility: Visibility<"threads">,
  status: "pending" | "running",
  threadIds: readonly string[] | undefined,
  limit: number,
  before: string | undefined,
): AsyncGenerator<RunSelector[]> {
  let last: PlaceRow | undefined = { thread_id: FIRST_ID, created_at: "-infinity", run_id: FIRST_ID };
  const which = fragment(
    (parameter) =>
      `status = '${status}'${threadIds === undefined ? "" : ` and thread_id = any(${parameter(threadIds)}::uuid[])`}`,
  );
  const visible = runVisible(visibility);
  while (last !== undefined) {
    const { thread_id: lastThread, created_at: lastCreated, run_id: lastRun }: PlaceRow = last;
    const page = { lastThread, lastCreated, lastRun, before, which, visible, limit: literal(limit) };
    const rows: PageRow[] = await LIST_PAGE.query<PageRow>(queryable, page);
    const found = rows.filter((row) => row.visible);
    if (found.length > 0) yield found.map(selectorOf);
    last = rows.length < limit ? undefined : rows.at(-1);
  }
}

/** Ordered by thread, `limit` at a time. */
export async function* unfinishedPages(
  database: Database,
  visibility: Visibility<"threads">,
  status: "pending" | "running",
  threadIds: readonly string[] | undefined,
  limit: number,
): AsyncGenerator<RunSelector[]> {
  if (threadIds?.length === 0) return;
  const [clock] = await database.query<{ now: string }>("select clock_timestamp()::text as now");
  yield* pagesOf(database, visibility, status, threadIds, limit, clock?.now);
}
