/* Runs that may start wait in lanes, one per caller and graph, so that claims take turns between callers. */

/** Delayed runs share one lane per graph, so in every other lane the first run may start at once. */
const LANE_OF_LATER_RUNS = 0;
const LANE_OF_NO_CALLER = 1;

/** `caller`: SQL. */
export const laneOfCaller = (caller: string): string => `coalesce(hashtext(${caller}), ${LANE_OF_NO_CALLER})`;

/**
 * Null if the run may not start. Must equal the expression of the index runs_claimable, or the planner may
 * read another index and sort.
 */
export const LANE = `(case when r.status = 'pending' and not r.behind
    then case when r.available_at > r.created_at then ${LANE_OF_LATER_RUNS} else ${laneOfCaller("r.caller")} end end)`;

export const IS_LATER = `${LANE} = ${LANE_OF_LATER_RUNS}`;

/** Lanes that one claim reads. */
export const LANES_AT_MOST = 20;
/** Of each lane. Other claimers may hold some, or an older run of the thread comes first. */
const CANDIDATES_AT_MOST = 20;
/** Of each lane. Most of them may have a caller at its limit, or no process left for them. */
const PASSED_AT_MOST = 2_000;

interface LaneSql {
  graphIds: string;
  /** Where the walk over a graph's lanes begins: random, because a claim reads only some lanes. */
  fromLane: string;
  /** Runs with this many lost attempts are no candidates. */
  lostBelow: string;
}

/** SQL conditions for runs that may start: on `graph_id`, on `lane` and on the run `r`. */
interface LaneConditions {
  graph: string;
  lane: string;
  run: string;
}
const ALL_LANES: LaneConditions = { graph: "true", lane: "true", run: "true" };

const firstLane = (graph: string, condition: string): string => `(select ${LANE} from threadloom.runs r
    where r.graph_id = ${graph} and ${LANE} ${condition} order by ${LANE} limit 1)`;
/** Behind the last lane comes the first. */
const nextLane = (graph: string, condition: string): string =>
  `coalesce(${firstLane(graph, condition)}, ${firstLane(graph, "is not null")})`;

/**
 * CTEs of a recursive `with`. `lanes` walks the lanes of all graphs in rings, and is read only until LANES_AT_MOST
 * lanes have a run. `candidates` are the first run of each lane in random order, then the second of each. Inner limits
 * are literals, because the planner expects a tenth of all rows for a parameter, and sorts them.
 */
export const candidates = (
  sql: LaneSql,
  may: LaneConditions = ALL_LANES,
): string => `lanes(graph_id, lane) as (
  select * from (
    select graph_id, ${nextLane("hosted.graph_id", `>= ${sql.fromLane}`)}
    from unnest((select ${sql.graphIds})) as hosted(graph_id) where ${may.graph} order by random()) as first
  union
  select graph_id, ${nextLane("lanes.graph_id", "> lanes.lane")} from lanes where lane is not null),
candidates as (
  select of_lane.run_id from (
    select waiting.run_ids from lanes cross join lateral (
      select array_agg(run_id) as run_ids from (
        select r.run_id from (
          select r.run_id, r.caller, r.lost_attempts, r.available_at, r.created_at from threadloom.runs r
          where r.graph_id = lanes.graph_id and ${LANE} = lanes.lane and r.available_at <= now()
          order by r.available_at, r.created_at, r.run_id limit ${PASSED_AT_MOST}) as r
        where r.lost_attempts < ${sql.lostBelow} and ${may.run}
        order by r.available_at, r.created_at, r.run_id limit ${CANDIDATES_AT_MOST}) as first) as waiting
    where ${may.lane} and waiting.run_ids is not null limit ${LANES_AT_MOST}) as read_lanes
  cross join unnest(read_lanes.run_ids) with ordinality as of_lane(run_id, place)
  order by of_lane.place, random())`;
