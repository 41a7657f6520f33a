import { sql, type SqlBool } from "kysely";
import type { Visibility } from "../../../access/visibility.ts";
import { queriesOver } from "../../../platform/database/queries.ts";
import { whereVisible } from "../../../access/where-visible.ts";
import type { Queryable, Records } from "../../../platform/database/database.ts";
import type { ThreadTtl } from "../../../graphs/project/thread-expiry.ts";

/*
 * The SQL that removes threads or says that they were pruned, each in a transaction of its caller. What a visibility
 * hides is as if it were not there.
 */

/** Raw for its CTE. In the order of their ids, so that two deletions of the same threads wait for each other and don't deadlock. */
const deletingIdle = (visible: string): string => `
  with idle as (
    select thread_id from threadloom.threads
     where thread_id = any($1::uuid[]) and unfinished_runs = 0 and ${visible} order by thread_id for update)
  delete from threadloom.threads using idle where threads.thread_id = idle.thread_id
  returning threads.thread_id`;

/** `expires_bin` is never later than `expires_at`, and has the index. */
const isExpired = (strategy: ThreadTtl["strategy"], visible: string): string =>
  `expires_bin <= now() and expires_at <= now() and unfinished_runs = 0 and ttl_strategy = '${strategy}'
     and not thread_id = any($1::uuid[]) and ${visible}`;

/**
 * Raw for its CTE. A literal limit: behind a parameter the planner expects a tenth of all that have expired, and may sort them.
 * Index: threads_by_expiry. Runs and events hang on the thread and go with it.
 */
const deletingExpired = (visible: string, limit: number): string => `
  with expired as (
    select thread_id from threadloom.threads where ${isExpired("delete", visible)}
    order by expires_bin limit ${limit} for update skip locked)
  delete from threadloom.threads t using expired e where t.thread_id = e.thread_id
  returning t.thread_id`;

/** Raw to stand beside the one above. The same index. `no key update` is what creating a run conflicts with. */
const lockingExpired = (visible: string): string => `
  select thread_id from threadloom.threads where ${isExpired("keep_latest", visible)}
  order by expires_bin limit 1 for no key update skip locked`;

type ThreadRow = { thread_id: string };

/** Deletes those of these threads that have no run in progress; the ids of those. So no run ends. */
export async function deleteIdle(
  transaction: Queryable,
  visibility: Visibility<"threads">,
  threadIds: readonly string[],
): Promise<string[]> {
  const values: unknown[] = [threadIds];
  const text = deletingIdle(visibility.condition("metadata", values));
  const rows = await transaction.query<{ thread_id: string }>(text, values);
  return rows.map((row) => row.thread_id);
}

/**
 * Locks those of these threads that are there, so that they can be deleted with their runs; their ids. In the order of
 * the ids, as `deleteIdle` does.
 */
export async function lockForDeletion(
  transaction: Records,
  visibility: Visibility<"threads">,
  threadIds: readonly string[],
): Promise<string[]> {
  const rows = await queriesOver(transaction)
    .selectFrom("threads")
    .select("thread_id")
    .where(sql<SqlBool>`thread_id = any(${threadIds}::uuid[])`)
    .where(whereVisible(visibility, "metadata"))
    .orderBy("thread_id")
    .forUpdate()
    .execute();
  return rows.map((row) => row.thread_id);
}

/**
 * Locks a thread for pruning; false if it isn't there or has a run in progress. A new run and an update of the state
 * wait until the transaction is over; an update that had read before finds the thread changed.
 *
 * Until the next change of its state there is nothing to prune, so `expires_at` is cleared. `updated_at` stays: a
 * user has changed nothing.
 */
export async function lockForPrune(
  transaction: Records,
  visibility: Visibility<"threads">,
  threadId: string,
): Promise<boolean> {
  const row = await queriesOver(transaction)
    .updateTable("threads")
    .set({
      expires_at: sql<Date | null>`case ttl_strategy when 'keep_latest' then null else expires_at end`,
      version: sql<string>`version + 1`,
    })
    .where("thread_id", "=", threadId)
    .where("unfinished_runs", "=", 0)
    .where(whereVisible(visibility, "metadata"))
    .returning("thread_id")
    .executeTakeFirst();
  return row !== undefined;
}

/** Deletes up to `limit` threads that have expired, but not those of `except`; answers their ids. */
export async function deleteExpired(
  transaction: Queryable,
  visibility: Visibility<"threads">,
  except: readonly string[],
  limit: number,
): Promise<string[]> {
  const values: unknown[] = [except];
  const text = deletingExpired(visibility.condition("metadata", values), Math.trunc(limit));
  return (await transaction.query<ThreadRow>(text, values)).map((row) => row.thread_id);
}

/** The id of one that is to be pruned, not one of `except`; locked until the transaction is over. */
export async function lockExpired(
  transaction: Queryable,
  visibility: Visibility<"threads">,
  except: readonly string[],
): Promise<string | undefined> {
  const values: unknown[] = [except];
  const text = lockingExpired(visibility.condition("metadata", values));
  return (await transaction.query<ThreadRow>(text, values))[0]?.thread_id;
}

/**
 * Until the next change of its state there is nothing to prune. `updated_at` stays: a user has changed nothing. The row
 * does change, which an update of the state sees that has read what is freed here.
 */
export async function markPruned(
  transaction: Records,
  visibility: Visibility<"threads">,
  threadId: string,
): Promise<void> {
  await queriesOver(transaction)
    .updateTable("threads")
    .set({ expires_at: null, version: sql<string>`version + 1` })
    .where("thread_id", "=", threadId)
    .where(whereVisible(visibility, "metadata"))
    .execute();
}
