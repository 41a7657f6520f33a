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

const COLUMN: Readonly<Record<Exclude<UsageGroup, "day">, string>> = {
  graph_id: "u.graph_id",
  assistant_id: "u.assistant_id",
  caller: "u.caller",
  model: "u.model",
  thread_id: "u.thread_id",
};
const FILTERS = ["graph_id", "caller", "model"] as const;
const ID_FILTERS = ["assistant_id", "thread_id"] as const;

const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);

const daysFrom = function* (first: string, last: string): Generator<string> {
  for (let time = Date.parse(first); time <= Date.parse(last); time += MS_PER_DAY) yield dayOf(time);
};

/** Index: model_usage_by_age. */
const rowsFrom = (first: string, last: string): RawBuilder<unknown> =>
  sql`u.created_at >= (${first}::date at time zone 'UTC') and u.created_at < ((${last}::date + 1) at time zone 'UTC')`;

/**
 * Sums of the tokens of models. A user who may not see all threads sees the usage of the runs that the user created: the
 * threads themselves may be gone.
 */
export const createUsageService = (
  authorize: Authorize,
  database: Database,
  currency: string | undefined,
) => {
  /** From the first to the last day with usage of any caller. */
  const daysWithUsage = async (from: string, to: string, signal?: AbortSignal): Promise<Iterable<string>> => {
    const [found] = await composedRead<{ first: string | null; last: string | null }>(
      database.boundedRead,
      sql`select (min(u.created_at) at time zone 'UTC')::date::text as first,
          (max(u.created_at) at time zone 'UTC')::date::text as last
        from threadloom.model_usage u where ${rowsFrom(from, to)}`,
      { signal },
    );
    return found?.first && found.last ? daysFrom(found.first, found.last) : [];
  };

  return {
    /** Rejects like `boundedRead`. Throws `invalid` if `from` is after `to`. */
    async sums(caller: Caller, query: UsageQuery, signal?: AbortSignal): Promise<UsageAnswer> {
      const { to = dayOf(Date.now()), group_by: groups } = query;
      const from = query.from ?? dayOf(Date.parse(to) - DAYS * MS_PER_DAY);
      if (from > to) throw invalid("'from' is after 'to'.");
      const visibility = await authorize(caller, "threads", "search", {});
      const names = userCountedAs(database.encryption, caller);
      const conditions: RawBuilder<unknown>[] = [
        sqlOf(visibility.on("", (_condition, parameter) => `u.caller = any(${parameter(names)}::text[])`)),
      ];
      for (const name of FILTERS)
        if (query[name] !== undefined) conditions.push(sql`${sql.raw(COLUMN[name])} = ${query[name]}::text`);
      for (const name of ID_FILTERS)
        if (query[name] !== undefined) conditions.push(sql`${sql.raw(COLUMN[name])} = ${query[name]}::uuid`);
      const columns = groups.filter((name) => name !== "day").map((name) => COLUMN[name]);
      const read = (first: string, last: string, rowsAtMost: number): Promise<UsageRow[]> =>
        composedRead<UsageRow>(
          database.boundedRead,
          sql`select ${sql.raw([...columns, "count(distinct u.run_id)::float8 as runs", USAGE_SUMS].join(", "))}
            from threadloom.model_usage u where ${sql.join([...conditions, rowsFrom(first, last)], sql` and `)}
            ${sql.raw(columns.length === 0 ? "" : `group by ${columns.join(", ")}`)} having count(*) > 0
            order by sum(u.input_tokens + u.output_tokens) desc limit ${rowsAtMost}::int`,
          { signal },
        );
      const rows: UsageRow[] = [];
      if (!groups.includes("day")) rows.push(...(await read(from, to, ROWS_AT_MOST + 1)));
      // One statement for a month of a million rows would exceed the time limit.
      else
        for (const day of await daysWithUsage(from, to, signal)) {
          for (const row of await read(day, day, ROWS_AT_MOST + 1 - rows.length)) rows.push({ day, ...row });
          if (rows.length > ROWS_AT_MOST) break;
        }
      return {
        from,
        to,
        currency: currency ?? null,
        rows: rows.slice(0, ROWS_AT_MOST),
        is_complete: rows.length <= ROWS_AT_MOST,
      };
    },
  };
};

export type UsageService = ReturnType<typeof createUsageService>;
