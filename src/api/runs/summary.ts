import { sql } from "kysely";
import { z } from "zod";
import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import type { Database } from "../../platform/database/database.ts";
import { composedRead, sqlOf } from "../../platform/database/queries.ts";
import type { RunStatus } from "../../platform/database/tables.ts";
import { queryInteger } from "../../platform/domain/json-schemas.ts";
import { timestamp } from "../../platform/lib/timestamps.ts";
import { runVisible } from "../../engine/queue/run-visible.ts";
import { createdBefore, createdSince } from "./search.ts";

const HOURS_AT_MOST = 168;

export const summaryQuery = z.object({
  hours: queryInteger(1, HOURS_AT_MOST).describe("The current hour is one of them. Default: 24."),
});

const STATUSES = ["pending", "running", "success", "error", "timeout", "interrupted"] as const;
type Counts = Record<RunStatus, number>;
const eachStatus = <Value>(valueOf: (status: RunStatus) => Value): Record<RunStatus, Value> =>
  Object.fromEntries(STATUSES.map((status) => [status, valueOf(status)])) as Record<RunStatus, Value>;

const counts = eachStatus(() => z.number());

const countsOfHour = z.object({ hour: z.string().describe("When the hour begins."), ...counts });

const durationMs = z
  .number()
  .nullable()
  .describe("From the first attempt to the end. Null: no such run has ended.");
const countsOfGraph = z.object({
  graph_id: z.string(),
  ...counts,
  median_ms: durationMs,
  p95_ms: durationMs,
});

export const summaryAnswer = z
  .object({
    from: z.string().describe("The time of creation counts."),
    to: z.string(),
    hours: z.array(countsOfHour).describe("The oldest hour first."),
    graphs: z.array(countsOfGraph).describe("At most 500, the largest number of runs first."),
    is_complete: z.boolean().describe("False: there are more graphs."),
  })
  .meta({ id: "RunSummary" });
export type SummaryAnswer = z.output<typeof summaryAnswer>;

const HOURS = 24;
const SECONDS_PER_HOUR = 3_600;
const MS_PER_HOUR = SECONDS_PER_HOUR * 1_000;
const HOURS_AT_ONCE = 24;
const GRAPHS_AT_MOST = 500;
const DURATIONS_AT_MOST = 100_000;

const COUNTS = STATUSES.map(
  (status) => `(count(*) filter (where r.status = '${status}'))::float8 as ${status}`,
).join(", ");

const noRuns = (): Counts => eachStatus(() => 0);
const sumOf = (some: Counts, others = noRuns()): Counts =>
  eachStatus((status) => some[status] + others[status]);

const allOf = (counts: Counts): number => STATUSES.reduce((sum, status) => sum + counts[status], 0);

/** @param hour since 1970 */
const timeOf = (hour: number): Date => new Date(hour * MS_PER_HOUR);

/** Of an hour or of a graph. */
type CountRow = Counts & { hour: number | null; graph_id: string | null };

interface DurationRow {
  graph_id: string;
  quantiles: [median: number, p95: number];
}

/** Counts of the runs that a caller may see. */
export const createSummaryService = (authorize: Authorize, database: Database) => ({
  /** Rejects like `boundedRead`. */
  async sums(caller: Caller, hours = HOURS, signal?: AbortSignal): Promise<SummaryAnswer> {
    const visible = sqlOf(runVisible(await authorize(caller, "threads", "search", {})));
    const end = Math.floor(Date.now() / MS_PER_HOUR) + 1;
    const start = end - hours;
    const within = (from: number, to: number) =>
      sql`${visible} and ${createdSince(timeOf(from))} and ${createdBefore(timeOf(to))}`;

    const byHour = new Map<number, Counts>();
    for (let hour = start; hour < end; hour += 1) byHour.set(hour, noRuns());
    const byGraph = new Map<string, Counts>();
    let isComplete = true;
    // One statement for a week of a million runs would exceed the time limit.
    for (let from = start; from < end; from += HOURS_AT_ONCE) {
      const to = Math.min(end, from + HOURS_AT_ONCE);
      const rows = await composedRead<CountRow>(
        database.boundedRead,
        sql`select hour::int, r.graph_id, ${sql.raw(COUNTS)}
        from threadloom.runs r, floor(extract(epoch from r.created_at) / ${SECONDS_PER_HOUR}::int) hour
        where ${within(from, to)} group by grouping sets ((hour), (r.graph_id))
        order by grouping(r.graph_id) desc, count(*) desc limit ${HOURS_AT_ONCE + GRAPHS_AT_MOST + 1}::int`,
        { signal },
      );
      if (rows.length > HOURS_AT_ONCE + GRAPHS_AT_MOST) isComplete = false;
      for (const row of rows) {
        const hour = Number(row.hour);
        if (row.graph_id === null) byHour.set(hour, sumOf(row, byHour.get(hour)));
        else byGraph.set(row.graph_id, sumOf(row, byGraph.get(row.graph_id)));
      }
    }
    const durations = await composedRead<DurationRow>(
      database.boundedRead,
      sql`select graph_id, percentile_cont(array[0.5, 0.95]::float8[]) within group (order by ms) as quantiles
        from (
          select r.graph_id, greatest(0, extract(epoch from r.updated_at - r.started_at) * 1000)::float8 as ms
          from threadloom.runs r
          where ${within(start, end)} and r.status not in ('pending', 'running') and r.started_at is not null
          order by r.run_id desc limit ${DURATIONS_AT_MOST}::int
        ) newest group by graph_id order by count(*) desc limit ${GRAPHS_AT_MOST}::int`,
      { signal },
    );
    const quantiles = new Map(durations.map((row) => [row.graph_id, row.quantiles]));
    const graphs = [...byGraph].sort(([, a], [, b]) => allOf(b) - allOf(a));
    return {
      from: timestamp(timeOf(start)),
      to: timestamp(timeOf(end)),
      hours: [...byHour].map(([hour, counts]) => ({ hour: timestamp(timeOf(hour)), ...counts })),
      graphs: graphs.slice(0, GRAPHS_AT_MOST).map(([graph_id, counts]) => {
        const [median_ms = null, p95_ms = null] = quantiles.get(graph_id) ?? [];
        return { graph_id, ...counts, median_ms, p95_ms };
      }),
      is_complete: isComplete && graphs.length <= GRAPHS_AT_MOST,
    };
  },
});
