import type { Database } from "../../platform/database/database.ts";
import { isOutOfRoom } from "../../platform/database/passing-faults.ts";

/** Two partial indexes of the queue answer it: runs that have ended are not looked at. */
const COUNT_UNFINISHED = `select
  (select count(*) from threadloom.runs where status = 'pending')::int as pending,
  (select count(*) from threadloom.runs where status = 'running')::int as running`;

/** Index: crons_due, which holds those that will be fired. */
const COUNT_CRONS = `select count(*)::int as scheduled, (count(*) filter (where next_run_date <= now()))::int as due,
  coalesce(greatest(0, extract(epoch from now() - min(next_run_date))), 0)::float8 as late_seconds
  from threadloom.crons where next_run_date is not null`;

/** Indexes: webhook_deliveries_due, webhook_deliveries_failed; what was delivered is not looked at. */
const COUNT_WEBHOOKS = `select pending.count::int as pending, failed.count::int as failed, pending.oldest_seconds
  from (select count(*), coalesce(greatest(0, extract(epoch from now() - min(run_ended_at))), 0)::float8 as oldest_seconds
    from threadloom.webhook_deliveries where state = 'pending') pending,
  (select count(*) from threadloom.webhook_deliveries where state = 'failed') failed`;

/** Index: threads_by_expiry. Rows are looked at, too, so no more are counted than say enough. */
const COUNTED_AT_MOST = 10_000;
const COUNT_EXPIRED = `select count(*)::int as expired,
  coalesce(greatest(0, extract(epoch from now() - min(expires_at))), 0)::float8 as late_seconds
  from (select expires_at from threadloom.threads where expires_bin <= now() and expires_at <= now() and unfinished_runs = 0
    order by expires_bin limit ${COUNTED_AT_MOST}) counted`;

/** Of all deployments that share the tables. */
export interface ExpiredCounts {
  /** Threads whose time is over and that are not removed yet; 10,000 are counted at most. */
  expired: number;
  /** How long the time of the first of them has been over; 0: there is none. */
  late_seconds: number;
}

/** Of all deployments that share the tables. */
export interface WebhookCounts {
  pending: number;
  /** Given up, and not removed yet. */
  failed: number;
  /** For how long the first of those has ended that nobody was told of; 0: all were. */
  oldest_seconds: number;
}

/** Of all deployments that share the tables. */
export interface CronCounts {
  scheduled: number;
  due: number;
  /** How long ago the first of those was due that nobody has fired yet; 0: none is due. */
  late_seconds: number;
}

/** `on` also in a standby. Not an update of nothing: that waits for whoever changes the table, and a probe would, too. */
const IS_WRITABLE = "select current_setting('transaction_read_only') = 'off' as writable";

/**
 * Writes a megabyte of what PostgreSQL keeps beside the tables while a statement is executed, on the disk of the database: it
 * fails where that is full, as a table that grows does, and leaves nothing behind. Needs no right, no write-ahead log, no table;
 * 10 ms. A row that is written would find room in a page that is there already.
 */
const WRITE_BESIDE_TABLES = `with written as materialized (select repeat('x', 8000) as line from generate_series(1, 128))
  select max(length(line)) from written`;

export const createStatusRepository = (database: Database) => ({
  /** Whether the database takes writes: one that was failed over answers, but takes none. Throws what it says if it is away. */
  async isWritable(): Promise<boolean> {
    const [row] = await database.query<{ writable: boolean }>(IS_WRITABLE);
    return row?.writable === true;
  },

  /** Whether there is room to write. Throws what the database says if it is away. */
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
    const [row] = await database.query<{ pending: number; running: number }>(COUNT_UNFINISHED, [], options);
    return row ?? { pending: 0, running: 0 };
  },

  async countWebhooks(): Promise<WebhookCounts> {
    const [row] = await database.query<WebhookCounts>(COUNT_WEBHOOKS);
    return row ?? { pending: 0, failed: 0, oldest_seconds: 0 };
  },

  async countExpired(): Promise<ExpiredCounts> {
    const [row] = await database.query<ExpiredCounts>(COUNT_EXPIRED);
    return row ?? { expired: 0, late_seconds: 0 };
  },

  async countCrons(): Promise<CronCounts> {
    const [row] = await database.query<CronCounts>(COUNT_CRONS);
    return row ?? { scheduled: 0, due: 0, late_seconds: 0 };
  },
});

export type StatusRepository = ReturnType<typeof createStatusRepository>;
