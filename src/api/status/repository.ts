import type { Database } from "../../platform/database/database.ts";
import { isOutOfRoom } from "../../platform/database/passing-faults.ts";
import { statement } from "../../platform/database/statement.ts";

/** Two partial indexes answer this without ended runs. */
const COUNT_UNFINISHED = `select
  (select count(*) from threadloom.runs where status = 'pending')::int as pending,
  (select count(*) from threadloom.runs where status = 'running')::int as running`;

/** Index: crons_due. */
const COUNT_CRONS = `select count(*)::int as scheduled, (count(*) filter (where next_run_date <= now()))::int as due,
  coalesce(greatest(0, extract(epoch from now() - min(next_run_date))), 0)::float8 as late_seconds
  from threadloom.crons where next_run_date is not null`;

/** Indexes: webhook_deliveries_due, webhook_deliveries_failed. */
const COUNT_WEBHOOKS = `select pending.count::int as pending, failed.count::int as failed, pending.oldest_seconds
  from (select count(*), coalesce(greatest(0, extract(epoch from now() - min(run_ended_at))), 0)::float8 as oldest_seconds
    from threadloom.webhook_deliveries where state = 'pending') pending,
  (select count(*) from threadloom.webhook_deliveries where state = 'failed') failed`;

/** Index: push_notifications_due. */
const COUNT_PUSHES =
  "select count(*)::int as pending from threadloom.push_notifications where state = 'pending'";

/** The count reads rows. Index: threads_by_expiry. */
const COUNTED_AT_MOST = 10_000;
const COUNT_EXPIRED = `select count(*)::int as expired,
  coalesce(greatest(0, extract(epoch from now() - min(expires_at))), 0)::float8 as late_seconds
  from (select expires_at from threadloom.threads where expires_bin <= now() and expires_at <= now() and unfinished_runs = 0
    order by expires_bin limit ${COUNTED_AT_MOST}) counted`;

/** Reads no rows of the tables. */
const TABLE_BYTES = statement(
  { schema: "text" },
  (sql) => `select c.relname::text as name, pg_total_relation_size(c.oid)::float8 as bytes
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = ${sql.schema} and c.relkind = 'r' order by c.relname limit 50`,
);

/** All counts cover all deployments that share the tables. */
export interface ExpiredCounts {
  /** At most 10,000. */
  expired: number;
  /** Since the first of them expired; else 0. */
  late_seconds: number;
}

export interface WebhookCounts {
  pending: number;
  failed: number;
  /** Since the first run with an undelivered webhook ended; else 0. */
  oldest_seconds: number;
}

export interface CronCounts {
  scheduled: number;
  due: number;
  /** Since the first unfired cron was due; else 0. */
  late_seconds: number;
}

/** An empty update would wait for locks of the table. */
const IS_WRITABLE = "select current_setting('transaction_read_only') = 'off' as writable";

/**
 * Writes a temporary file of a megabyte (10 ms), which fails on a full disk. A test row could find room in an existing
 * page.
 */
const WRITE_BESIDE_TABLES = `with written as materialized (select repeat('x', 8000) as line from generate_series(1, 128))
  select max(length(line)) from written`;

/** Of the parts of a distributed database, which answer with a row each. */
const sumOf = (figures: readonly number[]): number => figures.reduce((sum, figure) => sum + figure, 0);

export const createStatusRepository = (database: Database) => ({
  /** A standby answers but takes no writes. Throws the database's error. */
  async isWritable(): Promise<boolean> {
    const [row] = await database.query<{ writable: boolean }>(IS_WRITABLE);
    return row?.writable === true;
  },

  /** Throws the database's error unless the disk is full. */
  async hasRoom(): Promise<boolean> {
    try {
      await database.transaction(async (transaction) => {
        await transaction.query("set local work_mem = '64kB'");
        await transaction.query(WRITE_BESIDE_TABLES);
      });
      return true;
    } catch (error) {
      if (isOutOfRoom(error)) return false;
      throw error;
    }
  },

  /** `answerMs`: see Database.query. */
  async countUnfinishedRuns(options?: { answerMs: number }): Promise<{ pending: number; running: number }> {
    const parts = await database.query<Record<"pending" | "running", number>>(COUNT_UNFINISHED, [], options);
    return {
      pending: sumOf(parts.map(({ pending }) => pending)),
      running: sumOf(parts.map(({ running }) => running)),
    };
  },

  async countWebhooks(): Promise<WebhookCounts> {
    const parts = await database.query<WebhookCounts>(COUNT_WEBHOOKS);
    return {
      pending: sumOf(parts.map(({ pending }) => pending)),
      failed: sumOf(parts.map(({ failed }) => failed)),
      oldest_seconds: Math.max(0, ...parts.map((part) => part.oldest_seconds)),
    };
  },

  async countPushes(): Promise<number> {
    const parts = await database.query<{ pending: number }>(COUNT_PUSHES);
    return sumOf(parts.map(({ pending }) => pending));
  },

  async countExpired(): Promise<ExpiredCounts> {
    const parts = await database.query<ExpiredCounts>(COUNT_EXPIRED);
    return {
      expired: sumOf(parts.map(({ expired }) => expired)),
      late_seconds: Math.max(0, ...parts.map((part) => part.late_seconds)),
    };
  },

  /** By table, with its indexes. */
  async tableBytes(): Promise<Record<string, number>> {
    const rows = await TABLE_BYTES.query<{ name: string; bytes: number }>(database, {
      schema: database.schema,
    });
    return Object.fromEntries(rows.map(({ name, bytes }) => [name, bytes]));
  },

  async countCrons(): Promise<CronCounts> {
    const [row] = await database.query<CronCounts>(COUNT_CRONS);
    return row ?? { scheduled: 0, due: 0, late_seconds: 0 };
  },
});

export type StatusRepository = ReturnType<typeof createStatusRepository>;
