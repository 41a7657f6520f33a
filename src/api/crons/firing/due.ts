import type { Database, Queryable } from "../../../platform/database/database.ts";
import type { CronRow } from "../../../platform/database/tables.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import { COLUMNS, openCron } from "../repository.ts";

/** When to look again. */
export interface DueTime {
  /** By the clock of the database. */
  now: Date;
  /** When the first cron of a graph that is hosted here is due, in the past perhaps; null: there is none. */
  due: Date | null;
}

/** A cron that is due, held until the transaction is over. */
export type DueCron = CronRow & {
  /** Whose runs they are; null: no user created the cron. */
  auth_user: JsonObject | null;
  /** By whom they are counted. */
  caller: string | null;
  next_run_date: Date;
  now: Date;
  assistant_is_there: boolean;
  /** A run that it has made waits for its thread. */
  former_run_waits: boolean;
};

/** What became of a due time. */
export interface Advance {
  cronId: string;
  /** Null: it will not be due again. */
  next: Date | null;
  /** Why it is disabled; null: it is not. */
  error: string | null;
}

/** Of the requests of the crons of one claim, since all of them are in memory at once. */
const CLAIMED_BYTES_AT_MOST = 16 * 1024 * 1024;

/**
 * A cron whose assistant is gone is for everybody to disable. So is one whose assistant was made anew under the same id since
 * anybody said what the cron is to run: it may be somebody else's.
 */
const HOSTED =
  "left join threadloom.assistants a on a.assistant_id = c.assistant_id and a.created_at <= c.updated_at";
const isHosted = (graphIds: string): string =>
  `(a.graph_id is null or a.graph_id = any(${graphIds}::text[]))`;

/** Index: crons_due. It walks over crons that nobody hosts, which are those of a deployment that is down. */
const POLL = `select clock_timestamp() as now, (
  select c.next_run_date from threadloom.crons c ${HOSTED}
  where c.next_run_date is not null and ${isHosted("$1")} order by c.next_run_date limit 1) as due`;

/**
 * Those that another process holds are passed over: they are its to fire, and nobody waits. A row that was advanced since the
 * snapshot is read afresh, and is not due any more. The limit is a
 * literal, or the planner sorts all that are due. Indexes: crons_due; of the runs that wait: runs_pending_of_thread.
 */
const claiming = (limit: number): string => `with due as materialized (
  select ${COLUMNS.map((column) => `c.${column}`).join(", ")}, c.auth_user, c.caller, now() as now,
    a.assistant_id is not null as assistant_is_there,
    c.thread_id is not null and exists (select from threadloom.runs r where r.thread_id = c.thread_id and r.status = 'pending'
      and r.metadata ->> 'cron_id' = c.cron_id::text) as former_run_waits
  from threadloom.crons c ${HOSTED}
  where c.next_run_date <= now() and ${isHosted("$1")} and not c.cron_id = any($2::uuid[])
    and ($3::uuid[] is null or c.cron_id = any($3))
  order by c.next_run_date, c.cron_id limit ${limit}
  for update of c skip locked)
select * from (
  select due.*, sum(octet_length(payload)) over (order by next_run_date, cron_id) - octet_length(payload) as bytes_before
  from due) weighed
where bytes_before < ${CLAIMED_BYTES_AT_MOST} order by next_run_date, cron_id`;

/** Index: crons_pkey. */
const ADVANCE = `update threadloom.crons c
  set next_run_date = advanced.next, enabled = advanced.error is null, error = advanced.error
  from unnest($1::uuid[], $2::timestamptz[], $3::text[]) as advanced(cron_id, next, error)
  where c.cron_id = advanced.cron_id`;

export interface ClaimOptions {
  /** Those that can't be fired at this moment. */
  except: readonly string[];
  /** No others; undefined: all that are due. */
  only: readonly string[] | undefined;
  limit: number;
}

/** The SQL of crons that are due, of the graphs that this process hosts. */
export const createDueCrons = (database: Database, graphIds: readonly string[]) => ({
  async poll(): Promise<DueTime> {
    const [poll] = await database.query<DueTime>(POLL, [graphIds]);
    return poll ?? { now: new Date(), due: null };
  },

  async claim(transaction: Queryable, { except, only, limit }: ClaimOptions): Promise<DueCron[]> {
    const rows = await transaction.query<DueCron>(claiming(Math.trunc(limit)), [
      graphIds,
      except,
      only ?? null,
    ]);
    return rows.map((row) => openCron(transaction, row));
  },

  /** The caller holds them. */
  async advance(transaction: Queryable, advances: readonly Advance[]): Promise<void> {
    if (advances.length === 0) return;
    await transaction.query(ADVANCE, [
      advances.map(({ cronId }) => cronId),
      advances.map(({ next }) => next),
      advances.map(({ error }) => error),
    ]);
  },
});

export type DueCrons = ReturnType<typeof createDueCrons>;
