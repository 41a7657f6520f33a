import { sql, type RawBuilder, type SqlBool } from "kysely";
import type { Visibility } from "../../access/visibility.ts";
import { whereVisible } from "../../access/where-visible.ts";
import type { PageColumns } from "../../platform/database/bounded-reads.ts";
import type { Database } from "../../platform/database/database.ts";
import { composedRead } from "../../platform/database/queries.ts";
import { assertOnePlace } from "../../platform/domain/cursors.ts";
import {
  isBehindCursor,
  keyOf,
  nextCursor,
  type KeyColumns,
  type KeyOrder,
} from "../../platform/domain/key-order.ts";
import { assistantIdOf } from "../../platform/domain/assistant-ids.ts";
import type { CronRowNow } from "./record.ts";
import { COLUMNS } from "./repository.ts";
import type { CronFilter, CronSearch } from "./schemas.ts";

export interface CronPage {
  rows: CronRowNow[];
  /** Undefined for an empty page. */
  total: number | undefined;
  cursor: string | undefined;
}

const EMPTY = { metadata: "'{}'::jsonb", payload: "'{}'::text" } as const;

const orderOf = ({ sort_by: key = "created_at", sort_order: direction = "desc" }: CronSearch): KeyOrder => ({
  ...{ list: "crons", key, id: "cron_id", direction },
  holds: key.endsWith("_id") ? "ids" : "times",
});

const matching = (
  { encryption }: Database,
  visibility: Visibility<"crons">,
  { assistant_id, thread_id, enabled, metadata }: CronFilter,
): RawBuilder<SqlBool>[] => {
  encryption.assertSearchable(metadata);
  const conditions = [whereVisible(visibility, "metadata")];
  if (assistant_id !== undefined) conditions.push(sql`assistant_id = ${assistantIdOf(assistant_id)}::uuid`);
  if (thread_id !== undefined) conditions.push(sql`thread_id = ${thread_id}::uuid`);
  if (enabled !== undefined) conditions.push(sql`enabled = ${enabled}::boolean`);
  if (metadata !== undefined) conditions.push(sql`metadata @> ${JSON.stringify(metadata)}::jsonb`);
  return conditions;
};

/**
 * Metadata have no index, because each firing would update it. Indexes: crons_by_assistant, crons_by_thread,
 * crons_by_creation.
 */
export const createCronSearcher = (database: Database) => ({
  /** A page that would grow too large ends early. Rejects like `boundedRead`. */
  async page(
    visibility: Visibility<"crons">,
    search: CronSearch,
    fields: readonly string[],
    signal?: AbortSignal,
  ): Promise<CronPage> {
    assertOnePlace(search);
    const conditions = matching(database, visibility, search);
    const order = orderOf(search);
    if (search.cursor !== undefined) conditions.push(isBehindCursor(order, search.cursor));
    const where = sql.join(conditions, sql` and `);
    const columns = COLUMNS.map((column) =>
      (column === "metadata" || column === "payload") && !fields.includes(column)
        ? `${EMPTY[column]} as ${column}`
        : column,
    );
    const direction = sql.raw(order.direction);
    const query = sql`
      select ${sql.raw(columns.join(", "))}, now() as now, ${sql.raw(keyOf(order))} as cursor_key,
        cron_id::text as cursor_id, (select count(*)::int from threadloom.crons where ${where}) as total
      from threadloom.crons where ${where} order by ${sql.raw(order.key)} ${direction} nulls last, cron_id ${direction}
      limit ${search.limit}::int offset ${search.offset}::int`;
    const found = await composedRead<CronRowNow & PageColumns & KeyColumns & { total: number }>(
      database.boundedRead,
      query,
      { signal, weight: { columns: ["metadata"], octets: "octet_length(payload)" } },
    );
    const total = found[0]?.total;
    const cursor = nextCursor(order, found, { offset: search.offset, matching: total ?? 0 });
    return { rows: database.encryption.decryptedRows("crons", found), total, cursor };
  },

  /** Rejects like `boundedRead`. */
  async count(visibility: Visibility<"crons">, filter: CronFilter, signal?: AbortSignal): Promise<number> {
    const where = sql.join(matching(database, visibility, filter), sql` and `);
    const rows = await composedRead<{ count: number }>(
      database.boundedRead,
      sql`select count(*)::int as count from threadloom.crons where ${where}`,
      { signal },
    );
    return rows[0]?.count ?? 0;
  },
});

export type CronSearcher = ReturnType<typeof createCronSearcher>;
