import { sql, type SqlBool } from "kysely";
import { type Visibility, whereVisible } from "../../../access/visibility.ts";
import { queriesOver } from "../../../platform/database/queries.ts";
import type { Queryable, Records } from "../../../platform/database/database.ts";
import { literal, statement } from "../../../platform/database/statement.ts";
import type { ThreadTtl } from "../../../graphs/project/expiry.ts";

/** Raw SQL for the CTE. The order prevents deadlocks between two deletions. */
const DELETE_IDLE = statement(
  { threadIds: "uuid[]", visible: "fragment" },
  (sql) => `
  with idle as (
    select thread_id from threadloom.threads
     where thread_id = any(${sql.threadIds}) and unfinished_runs = 0 and ${sql.visible} order by thread_id for update)
  delete from threadloom.threads using idle where threads.thread_id = idle.thread_id
  returning threads.thread_id`,
);

/** `expires_bin` is indexed and never later than `expires_at`. */
const isExpired = (
  strategy: ThreadTtl["strategy"],
  sql: Readonly<Record<"except" | "visible", string>>,
): string =>
  `expires_bin <= now() and expires_at <= now() and unfinished_runs = 0 and ttl_strategy = '${strategy}'
     and not thread_id = any(${sql.except}) and ${sql.visible}`;

/**
 * Raw SQL for the CTE. The limit is a literal: with a parameter, the planner expects a tenth of all expired threads and
 * may sort them. Index: threads_by_expiry.
 */
const DELETE_EXPIRED = statement(
  { except: "uuid[]", visible: "fragment", limit: "fragment" },
  (sql) => `
  with expired as (
    select thread_id from threadloom.threads where ${isExpired("delete", sql)}
    order by expires_bin limit ${sql.limit} for update skip locked)
  delete from threadloom.threads t using expired e where t.thread_id = e.thread_id
  returning t.thread_id`,
);

/** Index: threads_by_expiry. Creating a run conflicts with `no key update`. */
const LOCK_EXPIRED = statement(
  { except: "uuid[]", visible: "fragment" },
  (sql) => `
  select thread_id from threadloom.threads where ${isExpired("keep_latest", sql)}
  order by expires_bin limit 1 for no key update skip locked`,
);

type ThreadRow = { thread_id: string };

export async function deleteIdle(
  transaction: Queryable,
  visibility: Visibility<"threads">,
  threadIds: readonly string[],
): Promise<string[]> {
  const rows = await DELETE_IDLE.query<ThreadRow>(transaction, {
    threadIds,
    visible: visibility.on("metadata"),
  });
  return rows.map((row) => row.thread_id);
}

/** In the order of the ids, as in `deleteIdle`. */
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
 * False if the thread is missing or has an unfinished run. New runs and updates wait; an update that read before finds
 * a new version.
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

export async function deleteExpired(
  transaction: Queryable,
  visibility: Visibility<"threads">,
  except: readonly string[],
  limit: number,
): Promise<string[]> {
  const rows = await DELETE_EXPIRED.query<ThreadRow>(transaction, {
    except,
    visible: visibility.on("metadata"),
    limit: literal(limit),
  });
  return rows.map((row) => row.thread_id);
}

export async function lockExpired(
  transaction: Queryable,
  visibility: Visibility<"threads">,
  except: readonly string[],
): Promise<string | undefined> {
  const visible = visibility.on("metadata");
  return (await LOCK_EXPIRED.query<ThreadRow>(transaction, { except, visible }))[0]?.thread_id;
}

/**
 * Clears `expires_at` until the state changes; keeps `updated_at` for users' changes. The new version makes an update
 * fail if its checkpoint may be gone.
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
