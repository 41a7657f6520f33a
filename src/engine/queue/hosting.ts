import type { Database } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";
import { isPassing } from "../../platform/database/passing-faults.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { startPeriodic } from "../../platform/lib/periodic.ts";
import { LANE } from "./sql/lanes.ts";

/* During a deployment, workers host different graphs. */

/** Runs are counted up to 10,000. */
export interface UnhostedRuns {
  graph_id: string;
  runs: number;
}

const SIGN_OF_LIFE_MS = 5_000;
/** A short outage of the database does not count as a death. */
export const SILENT_SECONDS = 15;
/** Older rows are deleted: their processes could not delete them. */
const FORGOTTEN_SECONDS = 3_600;

export const HOSTED_GRAPHS = `select unnest(w.graph_ids) from threadloom.workers w
  where w.seen_at > now() - interval '${SILENT_SECONDS} seconds'`;

const SIGN_OF_LIFE = statement(
  { processId: "uuid", graphIds: "text[]" },
  (sql) => `with forgotten as (
  delete from threadloom.workers where seen_at < now() - interval '${FORGOTTEN_SECONDS} seconds')
insert into threadloom.workers (worker_id, graph_ids) values (${sql.processId}, ${sql.graphIds})
on conflict (worker_id) do update set seen_at = now(), graph_ids = excluded.graph_ids`,
);

const FORGET = statement(
  { processId: "uuid" },
  (sql) => `delete from threadloom.workers where worker_id = ${sql.processId}`,
);

/** Without a bound the planner expects a full count and JIT-compiles the statement each time. */
const COUNTED_AT_MOST = 10_000;
/** Index: runs_claimable, one lookup per graph. Counts only runs that no worker hosts. */
const UNHOSTED = `with recursive graphs as (
  (select r.graph_id from threadloom.runs r where ${LANE} is not null order by r.graph_id limit 1)
  union all
  select (select r.graph_id from threadloom.runs r
          where ${LANE} is not null and r.graph_id > g.graph_id order by r.graph_id limit 1)
  from graphs g where g.graph_id is not null)
select g.graph_id, (select count(*)::int from (
    select from threadloom.runs r where ${LANE} is not null and r.graph_id = g.graph_id limit ${COUNTED_AT_MOST}) counted) as runs
from graphs g where g.graph_id is not null and not g.graph_id in (${HOSTED_GRAPHS})`;

/**
 * Publishes the hosted graphs of this process until closed, and warns of pending runs that no worker hosts.
 * `graphIds`: undefined if this process executes no runs.
 */
export const openHosting = async (
  database: Database,
  processId: string,
  graphIds: readonly string[] | undefined,
  logger: Logger,
) => {
  const sendSignOfLife = async (): Promise<void> => {
    if (graphIds !== undefined) await SIGN_OF_LIFE.query(database, { processId, graphIds });
  };
  /** Throws if the database is unreachable. */
  const listUnhosted = (): Promise<UnhostedRuns[]> => database.query<UnhostedRuns>(UNHOSTED);

  let missing = new Set<string>();
  const poll = async (): Promise<void> => {
    const unhosted = await listUnhosted();
    for (const { graph_id, runs } of unhosted) {
      if (!missing.has(graph_id))
        logger.warn(
          { graph_id, runs },
          "runs wait for a graph that no worker hosts; they start when one does",
        );
    }
    const now = new Set(unhosted.map((graph) => graph.graph_id));
    for (const graphId of missing) {
      if (!now.has(graphId))
        logger.info({ graph_id: graphId }, "runs of this graph no longer wait for a worker that hosts it");
    }
    missing = now;
  };

  await sendSignOfLife();
  await poll();
  const periodic = startPeriodic({
    everyMs: SIGN_OF_LIFE_MS,
    async work() {
      await sendSignOfLife();
      await poll();
    },
    onError(error) {
      if (isPassing(error)) logger.debug({ err: error }, "the graphs of this process could not be stored");
      else logger.error({ err: error }, "runs without a worker could not be listed");
    },
  });
  return {
    listUnhosted,
    async close(): Promise<void> {
      await periodic.close();
      if (graphIds === undefined) return;
      // If the delete fails, the row expires after `SILENT_SECONDS`.
      await FORGET.query(database, { processId }).catch(() => undefined);
    },
  };
};
