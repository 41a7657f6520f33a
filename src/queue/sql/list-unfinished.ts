import type { Visibility } from "../../access/visibility.ts";
import type { Queryable } from "../../database/database.ts";
import type { RunSelector } from "../attempts.ts";
import { runVisible } from "../run-visible.ts";

/** Index: runs_pkey. */
const named = (visible: string): string =>
  `select run_id, thread_id from threadloom.runs r
   where run_id = any($1::uuid[]) and status = any($2::text[]) and ${visible}`;

type PlaceRow = Record<"run_id" | "thread_id", string>;
/** `created_at` as text: a Date would round it. */
type PageRow = PlaceRow & { created_at: string };

const selectorOf = (row: PlaceRow): RunSelector => ({ threadId: row.thread_id, runId: row.run_id });

/** Those of these runs that are in one of these statuses. */
export const listNamed = async (
  queryable: Queryable,
  visibility: Visibility<"threads">,
  runIds: readonly string[],
  statuses: readonly string[],
): Promise<RunSelector[]> => {
  const values: unknown[] = [runIds, statuses];
  const visible = runVisible(visibility, values);
  return (await queryable.query<PlaceRow>(named(visible), values)).map(selectorOf);
};

const FIRST_ID = "00000000-0000-0000-0000-000000000000";

/**
 * Those after $1, $2, $3; what is created meanwhile is not meant, $4. The limit is a literal: the planner can't
 * know what a parameter will be.
 * Indexes: runs_pending_of_thread and runs_one_running_per_thread.
 */
const pageStatement = (
  status: "pending" | "running",
  ofThread: boolean,
  visible: string,
  limit: number,
): string =>
  `select thread_id, created_at::text as created_at, run_id from threadloom.runs r
   where status = '${status}' and (thread_id, created_at, run_id) > ($1::uuid, $2::timestamptz, $3::uuid)
     and created_at <= $4::timestamptz ${ofThread ? "and thread_id = $5::uuid" : ""} and ${visible}
   order by thread_id, r.created_at, run_id limit ${limit}`;

/** Runs of one status, of one thread or of all, from thread to thread, each once, `limit` at a time. */
export async function* unfinishedPages(
  queryable: Queryable,
  visibility: Visibility<"threads">,
  status: "pending" | "running",
  threadId: string | undefined,
  limit: number,
): AsyncGenerator<RunSelector[]> {
  const [clock] = await queryable.query<{ now: string }>("select clock_timestamp()::text as now");
  let last: PageRow | undefined = { thread_id: FIRST_ID, created_at: "-infinity", run_id: FIRST_ID };
  while (last !== undefined) {
    const values: unknown[] = [last.thread_id, last.created_at, last.run_id, clock?.now];
    if (threadId !== undefined) values.push(threadId);
    const visible = runVisible(visibility, values);
    const rows: PageRow[] = await queryable.query<PageRow>(
      pageStatement(status, threadId !== undefined, visible, limit),
      values,
    );
    if (rows.length > 0) yield rows.map(selectorOf);
    last = rows.length < limit ? undefined : rows.at(-1);
  }
}
