import type { Database } from "../../platform/database/database.ts";
import { isOutOfRoom } from "../../platform/database/passing-faults.ts";
import { statement } from "../../platform/database/statement.ts";
import { HOSTED_GRAPHS, SILENT_SECONDS } from "../../engine/queue/hosting.ts";
import type { Metrics, QueueRecord } from "./schemas.ts";

/** Two partial indexes answer this without ended runs. */
const COUNT_UNFINISHED = `select
  (select count(*) from threadloom.runs where status = 'pending')::int as num_pending,
  (select count(*) from threadloom.runs where status = 'running')::int as num_running`;

/** Index: crons_due. */
const COUNT_CRONS = `select count(*)::int as num_scheduled, (count(*) filter (where next_run_date <= now()))::int as num_due,
  coalesce(greatest(0, extract(epoch from now() - min(next_run_date))), 0)::float8 as late_seconds
  from threadloom.crons where next_run_date is not null`;

/** Indexes: deliveries_due, deliveries_failed. */
const COUNT_DELIVERIES = `select pending.webhooks::int as num_pending, failed.count::int as num_failed, pending.oldest_seconds,
    pending.pushes::int as pushes
  from (select count(*) filter (where kind = 'webhook') as webhooks, count(*) filter (where kind = 'push') as pushes,
      coalesce(greatest(0, extract(epoch from now() - min(run_ended_at) filter (where kind = 'webhook'))), 0)::float8 as oldest_seconds
    from threadloom.deliveries where state = 'pending') pending,
  (select count(*) from threadloom.deliveries where state = 'failed' and kind = 'webhook') failed`;

/** The count reads rows. Index: threads_by_expiry. */
const COUNTED_AT_MOST = 10_000;
const COUNT_EXPIRED = `select count(*)::int as num_expired,
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
type Counts<Name extends "queue" | "threads" | "crons" | "webhooks"> = NonNullable<Metrics[Name]>;

/** An empty update would wait for locks of the table. */
const IS_WRITABLE = "select current_setting('transaction_read_only') = 'off' as writable";

/**
 * Writes a temporary file of a megabyte (10 ms), which fails on a full disk. A test row could find room in an existing
 * page.
 */
const WRITE_BESIDE_TABLES = `with written as materialized (select repeat('x', 8000) as line from generate_series(1, 128))
  select max(length(line)) from written`;

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
  async countUnfinishedRuns(options?: { answerMs: number }): Promise<Omit<Counts<"queue">, "num_unhosted">> {
    return (await database.query<Omit<Counts<"queue">, "num_unhosted">>(COUNT_UNFINISHED, [], options))[0]!;
  },

  /** `pushes`: push notifications that are not delivered. */
  async countDeliveries(): Promise<Counts<"webhooks"> & { pushes: number }> {
    return (await database.query<Counts<"webhooks"> & { pushes: number }>(COUNT_DELIVERIES))[0]!;
  },

  async countExpired(): Promise<Counts<"threads">> {
    return (await database.query<Counts<"threads">>(COUNT_EXPIRED))[0]!;
  },

  async countCrons(): Promise<Counts<"crons">> {
    return (await database.query<Counts<"crons">>(COUNT_CRONS))[0]!;
  },

  /** By table, with its indexes. */
  async tableBytes(): Promise<Record<string, number>> {
    const rows = await TABLE_BYTES.query<{ name: string; bytes: number }>(database, {
      schema: database.schema,
    });
    return Object.fromEntries(rows.map(({ name, bytes }) => [name, bytes]));
  },
});

export type StatusRepository = ReturnType<typeof createStatusRepository>;

/** 100,000 pending runs took 0.4 to 1.4 s on two busy cores. */
const RUNS_CHECKED_AT_MOST = 50_000;
const GRAPHS_AT_MOST = 100;
const THREADS_AT_MOST = 50;
const SERVERS_AT_MOST = 100;

type Waiting = Omit<QueueRecord, "servers" | "slots">;
type WorkingServer = Omit<QueueRecord["servers"][number], "seen_at"> & { seen_at: Date | null };

const OLDEST = "max(seconds) filter (where seconds >= 0)";

/**
 * Indexes: runs_pending_of_thread, runs_one_begun_per_thread. `seconds`: since the run could start; negative for a
 * scheduled run.
 */
const WAITING = `with waiting as materialized (
  select graph_id, thread_id, extract(epoch from now() - greatest(created_at, available_at))::float8 as seconds
  from threadloom.runs where status = 'pending' limit ${RUNS_CHECKED_AT_MOST} + 1),
working as materialized (
  select graph_id, count(*)::int as running from threadloom.runs where status = 'running' group by graph_id),
graphs as (
  select graph_id, count(*)::int as pending, ${OLDEST} as oldest from waiting group by graph_id),
threads as (
  select thread_id, min(graph_id) as graph_id, count(*)::int as pending, ${OLDEST} as oldest
  from waiting group by thread_id order by pending desc, oldest desc nulls last, thread_id limit ${THREADS_AT_MOST})
select (select count(*)::int from waiting) as num_pending,
  (select count(*)::int from waiting where seconds < 0) as num_scheduled,
  (select coalesce(sum(running), 0)::int from working) as num_running,
  (select ${OLDEST} from waiting) as oldest_seconds,
  (select count(*) <= ${RUNS_CHECKED_AT_MOST} from waiting) as is_complete,
  (select coalesce(json_agg(row_to_json(one) order by one.num_pending desc, one.num_running desc, one.graph_id), '[]') from (
    select graph_id, coalesce(pending, 0) as num_pending, coalesce(running, 0) as num_running, oldest as oldest_seconds,
      graph_id in (${HOSTED_GRAPHS}) as is_hosted
    from graphs full join working using (graph_id)
    order by 2 desc, 3 desc, 1 limit ${GRAPHS_AT_MOST}) one) as graphs,
  (select coalesce(json_agg(json_build_object('thread_id', thread_id, 'graph_id', graph_id, 'num_pending', pending,
    'oldest_seconds', oldest) order by pending desc, oldest desc nulls last, thread_id), '[]') from threads) as threads`;

/**
 * A silent server is listed while it holds runs that another server will take over. Index: runs_one_begun_per_thread.
 */
const SERVERS = `select server_id, coalesce(running, 0) as num_running, seen_at, coalesce(graph_ids, '{}') as graph_ids
  from (select worker_id as server_id, count(*)::int as running from threadloom.runs
    where status = 'running' and worker_id is not null group by worker_id) held
  full join (select worker_id as server_id, seen_at, graph_ids from threadloom.workers) known using (server_id)
  where running > 0 or (seen_at > now() - interval '${SILENT_SECONDS} seconds' and graph_ids <> '{}')
  order by num_running desc, server_id limit ${SERVERS_AT_MOST}`;

export const createQueueRepository = (database: Database) => ({
  /** Rejects like `boundedRead`. */
  async waiting(signal?: AbortSignal): Promise<Waiting> {
    const [row] = await database.boundedRead<Waiting>(WAITING, [], signal);
    if (row === undefined) throw new Error("A statement of aggregates answers one row.");
    return row;
  },

  servers: (signal?: AbortSignal): Promise<WorkingServer[]> =>
    database.boundedRead<WorkingServer>(SERVERS, [], signal),
});

export type QueueRepository = ReturnType<typeof createQueueRepository>;
