import type { Database } from "../../../platform/database/database.ts";
import { HOSTED_GRAPHS, SILENT_SECONDS } from "../../../engine/queue/hosting.ts";

/** 100,000 pending runs took 0.4 to 1.4 s on two busy cores. */
const RUNS_CHECKED_AT_MOST = 50_000;
const GRAPHS_AT_MOST = 100;
const THREADS_AT_MOST = 50;
const SERVERS_AT_MOST = 100;

export interface WaitingGraph {
  graph_id: string;
  num_pending: number;
  num_running: number;
  oldest_seconds: number | null;
  is_hosted: boolean;
}

export interface WaitingThread {
  thread_id: string;
  graph_id: string;
  num_pending: number;
  oldest_seconds: number | null;
}

export interface Waiting {
  num_pending: number;
  num_scheduled: number;
  num_running: number;
  oldest_seconds: number | null;
  is_complete: boolean;
  graphs: WaitingGraph[];
  threads: WaitingThread[];
}

export interface WorkingServer {
  server_id: string;
  num_running: number;
  seen_at: Date | null;
  graph_ids: string[];
}

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
