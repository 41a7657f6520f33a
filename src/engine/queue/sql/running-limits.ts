import { laneOfCaller } from "./lanes.ts";

/** Over all servers. */
export interface RunningLimits {
  /** Per user; 0: no limit. */
  perCaller: number;
  /** An API key may have this many times `perCaller`. */
  keyFactor: number;
  byGraph: ReadonlyMap<string, number>;
}

export const limitsRuns = ({ perCaller, byGraph }: RunningLimits): boolean =>
  perCaller > 0 || byGraph.size > 0;

export const LIMIT_PARAMETERS = {
  perUser: ["integer", ({ limits }: { limits: RunningLimits }) => limits.perCaller],
  perKey: ["bigint", ({ limits }: { limits: RunningLimits }) => limits.perCaller * limits.keyFactor],
  limitedGraphs: ["text[]", ({ limits }: { limits: RunningLimits }) => [...limits.byGraph.keys()]],
  graphLimits: ["integer[]", ({ limits }: { limits: RunningLimits }) => [...limits.byGraph.values()]],
} as const;

/**
 * Callers and graphs at their limit. Reads all running runs, so only claims with a limit pay for this. Index:
 * runs_one_begun_per_thread.
 */
export const fullOnes = (
  sql: Readonly<Record<keyof typeof LIMIT_PARAMETERS, string>>,
): string => `running as materialized (
  select r.caller, r.graph_id from threadloom.runs r where r.status = 'running'),
full_callers as materialized (
  select caller, ${laneOfCaller("caller")} as lane from running where caller is not null and ${sql.perUser} > 0
  group by caller having count(*) >= case when caller like 'user:%' then ${sql.perUser} else ${sql.perKey} end),
full_graphs as materialized (
  select graph_id from unnest(${sql.limitedGraphs}, ${sql.graphLimits}) as limited(graph_id, at_most)
  where (select count(*) from running where running.graph_id = limited.graph_id) >= at_most)`;

/**
 * `run`: of the row `r`. A caller at its limit also closes its lane for other callers with the same hash, until one
 * of its runs ends.
 */
export const MAY_START = {
  graph: "graph_id <> all (array(select graph_id from full_graphs))",
  lane: "lane <> all (array(select lane from full_callers))",
  run: "(r.caller is null or r.caller <> all (array(select caller from full_callers)))",
} as const;

/**
 * Without the idle timeout, the lock of a vanished server stays until TCP gives up, which takes hours. `lock_timeout`
 * exceeds the idle timeout, so waiters outlast such a server.
 */
export const BEGIN_COUNTING =
  "begin; set local idle_in_transaction_session_timeout = '5s'; set local lock_timeout = '10s'";

/**
 * Held until the claim commits, so that no other claim counts meanwhile. A table lock, because not every
 * engine has advisory locks; its mode conflicts with itself, but not with heartbeats.
 */
export const LOCK_FOR_COUNTING = "lock table threadloom.workers in share update exclusive mode";
