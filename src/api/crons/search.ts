import type { Visibility } from "../../access/visibility.ts";
import { roomyPage, type PageColumns } from "../../platform/database/bounded-reads.ts";
import type { Database } from "../../platform/database/database.ts";
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
  /** The next page's cursor. */
  cursor: string | undefined;
}

const EMPTY = { metadata: "'{}'::jsonb", payload: "'{}'::text" } as const;

const orderOf = ({ sort_by: key = "created_at", sort_order: direction = "desc" }: CronSearch): KeyOrder => ({
  ...{ list: "crons", key, id: "cron_id", direction },
  holds: key.endsWith("_id") ? "ids" : "times",
});

const conditionsOf = (
  { encryption }: Database,
  visibility: Visibility<"crons">,
  { assistant_id, thread_id, enabled, metadata }: CronFilter,
): { where: string; values: unknown[] } => {
  encryption.assertSearchable(metadata);
  const values: unknown[] = [];
  const clauses: string[] = [];
  const add = (clause: (parameter: string) => string, value: unknown): void => {
    clauses.push(clause(`$${values.push(value)}`));
  };
  if (assistant_id !== undefined) add((one) => `assistant_id = ${one}::uuid`, assistantIdOf(assistant_id));
  if (thread_id !== undefined) add((one) => `thread_id = ${one}::uuid`, thread_id);
  if (enabled !== undefined) add((one) => `enabled = ${one}::boolean`, enabled);
  if (metadata !== undefined) add((one) => `metadata @> ${one}::jsonb`, JSON.stringify(metadata));
  clauses.push(visibility.condition("metadata", values));
  return { where: `where ${clauses.join(" and ")}`, values };
};

/**
 * Indexes: crons_by_assistant, crons_by_thread, crons_by_creation. Metadata have none, which each firing would update:
 * there are thousands of crons at most.
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
    const conditions = conditionsOf(database, visibility, search);
    const { values } = conditions;
    const order = orderOf(search);
    const where =
      search.cursor === undefined
        ? conditions.where
        : `${conditions.where} and ${isBehindCursor(order, search.cursor, (value) => `$${values.push(value)}`)}`;
    const columns = COLUMNS.map((column) =>
      (column === "metadata" || column === "payload") && !fields.includes(column)
        ? `${EMPTY[column]} as ${column}`
        : column,
    );
    const statement = `select ${columns.join(", ")}, now() as now, ${keyOf(order)} as cursor_key, cron_id::text as cursor_id,
        (select count(*)::int from threadloom.crons ${where}) as total
      from threadloom.crons ${where} order by ${order.key} ${order.direction} nulls last, cron_id ${order.direction}
      limit $${values.length + 1}::int offset $${values.length + 2}::int`;
    const found = await database.boundedRead<CronRowNow & PageColumns & KeyColumns & { total: number }>(
      roomyPage(statement, { columns: ["metadata"], octets: "octet_length(payload)" }),
      [...values, search.limit, search.offset],
      signal,
    );
    const total = found[0]?.total;
    const cursor = nextCursor(order, found, { offset: search.offset, matching: total ?? 0 });
    return { rows: database.encryption.decryptedRows("crons", found), total, cursor };
  },

  /** Rejects like `boundedRead`. */
  async count(visibility: Visibility<"crons">, filter: CronFilter, signal?: AbortSignal): Promise<number> {
    const { where, values } = conditionsOf(database, visibility, filter);
    const rows = await database.boundedRead<{ count: number }>(
      `select count(*)::int as count from threadloom.crons ${where}`,
      values,
      signal,
    );
    return rows[0]?.count ?? 0;
  },
});

export type CronSearcher = ReturnType<typeof createCronSearcher>;
