import type { Database } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";
import { OF_RUN, type RunSelector } from "../queue/attempts.ts";
import { logFailure } from "../../platform/database/outages.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { startPeriodic } from "../../platform/lib/periodic.ts";

export interface TracePart {
  attempt: number;
  part: number;
  started_at: Date;
  /** JSON objects separated by commas. */
  spans: string;
}

/** The tokens of one model in all attempts of a run, as in `PricedUsage`. */
export interface UsageOfModel {
  model: string;
  calls: number;
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  cache_creation_tokens: number;
  reasoning_tokens: number;
  cost: number | null;
}

/** A run has few attempts, and each 256 KB at most. */
const PARTS_AT_MOST = 5_000;

/** Index: run_traces_pkey. */
const READ = statement(
  OF_RUN,
  (sql) => `select run_id, attempt, part, started_at, spans from threadloom.run_traces
  where thread_id = ${sql.threadId} and run_id = ${sql.runId} order by attempt, part limit ${PARTS_AT_MOST}`,
);

/** Sums of `model_usage`, as numbers. */
export const USAGE_SUMS = [
  "calls",
  "input_tokens",
  "output_tokens",
  "cache_read_tokens",
  "cache_creation_tokens",
  "reasoning_tokens",
]
  .map((column) => `sum(u.${column})::float8 as ${column}`)
  .concat("sum(u.cost)::float8 as cost")
  .join(", ");

/** Index: model_usage_pkey. */
const USAGE = statement(
  OF_RUN,
  (sql) =>
    `select u.model, ${USAGE_SUMS} from threadloom.model_usage u where u.thread_id = ${sql.threadId} and u.run_id = ${sql.runId} group by u.model order by u.model`,
);

const OF_BATCH = { retentionSeconds: "float8", limit: "bigint" } as const;
const age = (sql: Readonly<Record<"retentionSeconds", string>>): string =>
  `now() - make_interval(secs => ${sql.retentionSeconds})`;

/** The smallest id of a run that was created then: version 7 begins with the milliseconds since 1970. */
const idAt = (time: string): string =>
  `(lpad(to_hex((extract(epoch from ${time}) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid`;

/** Delayed runs are younger than their ids. Index: run_traces_pkey. */
const DELETE_TRACES = statement(
  OF_BATCH,
  (sql) => `delete from threadloom.run_traces where (run_id, attempt, part) in (
  select run_id, attempt, part from threadloom.run_traces
  where run_id < ${idAt(age(sql))} and created_at < ${age(sql)}
  order by run_id limit ${sql.limit} for update skip locked) returning 1`,
);
/** Indexes: model_usage_by_age, model_usage_pkey. */
const DELETE_USAGE = statement(
  OF_BATCH,
  (sql) => `delete from threadloom.model_usage where (thread_id, run_id, attempt, part, model) in (
  select thread_id, run_id, attempt, part, model from threadloom.model_usage where created_at < ${age(sql)}
  order by created_at limit ${sql.limit} for update skip locked) returning 1`,
);

export const createTraceStorage = (database: Database) => ({
  /** In the order of attempts and parts. */
  async read(run: RunSelector): Promise<TracePart[]> {
    const rows = await READ.query<TracePart & { run_id: string }>(database, run);
    return await database.encryption.decryptedRows("run_traces", rows);
  },

  usageOf: (run: RunSelector): Promise<UsageOfModel[]> => USAGE.query<UsageOfModel>(database, run),

  /** Parts removed; `limit`: at most. */
  async deleteTraces(retentionSeconds: number, limit: number): Promise<number> {
    return (await DELETE_TRACES.query(database, { retentionSeconds, limit })).length;
  },

  /** Rows removed; `limit`: at most. */
  async deleteUsage(retentionSeconds: number, limit: number): Promise<number> {
    return (await DELETE_USAGE.query(database, { retentionSeconds, limit })).length;
  },
});

export type TraceStorage = ReturnType<typeof createTraceStorage>;

const SWEEP_MS = 60_000;
const PER_BATCH = 1_000;

/** Several processes share the work: the statements skip locked rows. */
export const startTraceRetention = (
  storage: Pick<TraceStorage, "deleteTraces" | "deleteUsage">,
  seconds: { traces: number; usage: number },
  logger: Logger,
): { close(): Promise<void> } => {
  let closed = false;
  const periodic = startPeriodic({
    everyMs: SWEEP_MS,
    async work() {
      while (!closed && (await storage.deleteTraces(seconds.traces, PER_BATCH)) >= PER_BATCH);
      while (!closed && (await storage.deleteUsage(seconds.usage, PER_BATCH)) >= PER_BATCH);
    },
    onError: logFailure(logger, "old traces could not be removed"),
  });
  return {
    async close() {
      closed = true;
      await periodic.close();
    },
  };
};
