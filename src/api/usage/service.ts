import { sql, type RawBuilder } from "kysely";
import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import { userCountedAs } from "../../engine/queue/counted-as.ts";
import { USAGE_SUMS } from "../../engine/traces/storage.ts";
import type { Database } from "../../platform/database/database.ts";
import { composedRead, sqlOf } from "../../platform/database/queries.ts";
import { invalid } from "../../platform/domain/errors.ts";
import type { UsageAnswer, UsageGroup, UsageQuery, UsageRow } from "./schemas.ts";

const ROWS_AT_MOST = 10_000;
const DAYS = 30;
const MS_PER_DAY = 86_400_000;

const COLUMN: Readonly<Record<UsageGroup, string>> = {
  day: "(u.created_at at time zone 'UTC')::date::text",
  graph_id: "u.graph_id",
  assistant_id: "u.assistant_id",
  caller: "u.caller",
  model: "u.model",
  thread_id: "u.thread_id",
};
const FILTERS = ["graph_id", "caller", "model"] as const;
const ID_FILTERS = ["assistant_id", "thread_id"] as const;

const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);

/**
 * Sums of the tokens of models. A user who may not see all threads sees the usage of the runs that the user created: the
 * threads themselves may be gone.
 */
export const createUsageService = (
  authorize: Authorize,
  database: Database,
  currency: string | undefined,
) => ({
  /** Rejects like `boundedRead`. Throws `invalid` if `from` is after `to`. */
  async sums(caller: Caller, query: UsageQuery, signal?: AbortSignal): Promise<UsageAnswer> {
    const { to = dayOf(Date.now()), group_by: groups } = query;
    const from = query.from ?? dayOf(Date.parse(to) - DAYS * MS_PER_DAY);
    if (from > to) throw invalid("'from' is after 'to'.");
    const visibility = await authorize(caller, "threads", "search", {});
    const names = userCountedAs(database.encryption, caller);
    const conditions: RawBuilder<unknown>[] = [
      sqlOf(visibility.on("", (_condition, parameter) => `u.caller = any(${parameter(names)}::text[])`)),
      sql`u.created_at >= (${from}::date at time zone 'UTC')`,
      sql`u.created_at < ((${to}::date + 1) at time zone 'UTC')`,
    ];
    for (const name of FILTERS)
      if (query[name] !== undefined) conditions.push(sql`${sql.raw(COLUMN[name])} = ${query[name]}::text`);
    for (const name of ID_FILTERS)
      if (query[name] !== undefined) conditions.push(sql`${sql.raw(COLUMN[name])} = ${query[name]}::uuid`);
    const shown = groups.map((name) => `${COLUMN[name]} as ${name}`);
    const order = groups.includes("day") ? "day, " : "";
    const rows = await composedRead<UsageRow>(
      database.boundedRead,
      sql`select ${sql.raw([...shown, "count(distinct u.run_id)::float8 as runs", USAGE_SUMS].join(", "))}
        from threadloom.model_usage u where ${sql.join(conditions, sql` and `)}
        group by ${sql.raw(groups.map((_, index) => index + 1).join(", "))}
        order by ${sql.raw(order)}sum(u.input_tokens + u.output_tokens) desc limit ${ROWS_AT_MOST + 1}::int`,
      { signal },
    );
    const isComplete = rows.length <= ROWS_AT_MOST;
    return {
      from,
      to,
      currency: currency ?? null,
      rows: rows.slice(0, ROWS_AT_MOST),
      is_complete: isComplete,
    };
  },
});

export type UsageService = ReturnType<typeof createUsageService>;
