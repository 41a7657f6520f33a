import type { CronRow } from "../../../platform/database/tables.ts";
import type { Database, Queryable } from "../../../platform/database/database.ts";
import { literal, statement } from "../../../platform/database/statement.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import { COLUMNS } from "../repository.ts";

export interface DueTime {
  /** The database's time. */
  now: Date;
  /** May be in the past. Null if no cron of a hosted graph is scheduled. */
  due: Date | null;
}

export type DueCron = CronRow & {
  auth_user: JsonObject | null;
  caller: string | null;
  next_run_date: Date;
  now: Date;
  assistant_is_there: boolean;
};

export interface Advance {
  cronId: string;
  /** Null: never due again. */
  next: Date | null;
  /** Null: the cron stays enabled. */
  error: string | null;
}

/** The payloads of one claim are in memory at the same time. */
const CLAIMED_BYTES_AT_MOST = 16 * 1024 * 1024;

/**
 * An assistant that was recreated after the cron's last change counts as missing, because it may belong to another
 * user. Any process may disable such a cron.
 */
const HOSTED =
  "left join threadloom.assistants a on a.assistant_id = c.assistant_id and a.created_at <= c.updated_at";
const isHosted = (graphIds: string): string => `(a.graph_id is null or a.graph_id = any(${graphIds}))`;

/** Index: crons_due. The scan reads and skips due crons of a stopped deployment. */
const POLL = statement(
  { graphIds: "text[]" },
  (sql) => `select clock_timestamp() as now, (
  select c.next_run_date from threadloom.crons c ${HOSTED}
  where c.next_run_date is not null and ${isHosted(sql.graphIds)} order by c.next_run_date limit 1) as due`,
);

/**
 * PostgreSQL rereads an advanced row, which is then no longer due. The limit is a literal: with a parameter, the
 * planner would sort all due crons. Index: crons_due.
 */
const CLAIM = statement(
  { graphIds: "text[]", except: "uuid[]", only: "uuid[]", limit: "fragment" },
  (sql) => `with due as materialized (
  select ${COLUMNS.map((column) => `c.${column}`).join(", ")}, c.auth_user, c.caller, now() as now,
    a.assistant_id is not null as assistant_is_there
  from threadloom.crons c ${HOSTED}
  where c.next_run_date <= now() and ${isHosted(sql.graphIds)} and not c.cron_id = any(${sql.except})
    and (${sql.only} is null or c.cron_id = any(${sql.only}))
  order by c.next_run_date, c.cron_id limit ${sql.limit}
  for update of c skip locked)
select * from (
  select due.*, sum(octet_length(payload)) over (order by next_run_date, cron_id) - octet_length(payload) as bytes_before
  from due) weighed
where bytes_before < ${CLAIMED_BYTES_AT_MOST} order by next_run_date, cron_id`,
);

/** Index: runs_pending_of_thread. */
const WAITING = statement(
  { threadIds: "uuid[]", cronIds: "text[]" },
  (sql) => `select given.cron_id
from unnest(${sql.threadIds}, ${sql.cronIds}) as given(thread_id, cron_id)
where exists (select from threadloom.runs r where r.thread_id = any(${sql.threadIds})
  and r.thread_id = given.thread_id and r.status = 'pending' and r.metadata ->> 'cron_id' = given.cron_id)`,
);

/** Index: crons_pkey. */
const ADVANCE = statement(
  { cronIds: "uuid[]", nexts: "timestamptz[]", errors: "text[]" },
  (sql) => `update threadloom.crons c
  set next_run_date = advanced.next, enabled = advanced.error is null, error = advanced.error
  from unnest(${sql.cronIds}, ${sql.nexts}, ${sql.errors}) as advanced(cron_id, next, error)
  where c.cron_id = advanced.cron_id`,
);

export interface ClaimOptions {
  except: readonly string[];
  /** Undefined: all due crons. */
  only: readonly string[] | undefined;
  limit: number;
}

export const createDueCrons = (database: Database, graphIds: readonly string[]) => ({
  async poll(): Promise<DueTime> {
    const [poll] = await POLL.query<DueTime>(database, { graphIds });
    return poll ?? { now: new Date(), due: null };
  },

  async claim(transaction: Queryable, { except, only, limit }: ClaimOptions): Promise<DueCron[]> {
    const rows = await CLAIM.query<DueCron>(transaction, {
      graphIds,
      except,
      only,
      limit: literal(limit),
    });
    return transaction.encryption.decryptedRows("crons", rows);
  },

  /** Those of which an earlier run waits on the cron's thread. */
  async waiting(transaction: Queryable, crons: readonly DueCron[]): Promise<ReadonlySet<string>> {
    const onThreads = crons.filter((cron) => cron.thread_id !== null);
    if (onThreads.length === 0) return new Set();
    const rows = await WAITING.query<{ cron_id: string }>(transaction, {
      threadIds: onThreads.map((cron) => cron.thread_id),
      cronIds: onThreads.map((cron) => cron.cron_id),
    });
    return new Set(rows.map((row) => row.cron_id));
  },

  async advance(transaction: Queryable, advances: readonly Advance[]): Promise<void> {
    if (advances.length === 0) return;
    await ADVANCE.query(transaction, {
      cronIds: advances.map(({ cronId }) => cronId),
      nexts: advances.map(({ next }) => next),
      errors: advances.map(({ error }) => error),
    });
  },
});

export type DueCrons = ReturnType<typeof createDueCrons>;
