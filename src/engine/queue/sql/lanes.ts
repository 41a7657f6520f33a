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

/** Lanes that one claim reads, in random order. */
export const LANES_AT_MOST = 20;
/** Other claimers may hold some candidates, or an older run of the thread comes first. */
const SPARE_CANDIDATES = 200;

/** Runs of callers at their limit that a claim skips per lane. */
const PASSED_AT_MOST = 2_000;

const RUN_COLUMNS = "r.available_at, r.created_at, r.run_id, r.lost_attempts";
const runAfter = (
  lane: string,
  row = lane,
  columns = RUN_COLUMNS,
): string => `(select ${columns} from threadloom.runs r
      where r.graph_id = ${lane}.graph_id and ${LANE} = ${lane}.lane and r.available_at <= now()
        and (r.available_at, r.created_at, r.run_id) > (${row}.available_at, ${row}.created_at, ${row}.run_id)
      order by r.available_at, r.created_at, r.run_id limit 1)`;

/** The lane of delayed runs mixes callers at their limit with others. */
const startableAfter = (lane: string, may: (run: string) => string): string => `(
    with recursive passed as (
      select first.*, 1 as looked_at from ${runAfter(lane, lane, `${RUN_COLUMNS}, r.caller`)} as first
      union all
      select following.*, passed.looked_at + 1 from passed
      cross join lateral ${runAfter(lane, "passed", `${RUN_COLUMNS}, r.caller`)} as following
      where passed.looked_at < ${PASSED_AT_MOST} and not ${may("passed")})
    select ${RUN_COLUMNS} from passed r where ${may("r")} limit 1)`;

const BEGINNINGS = `(select graph_id, lane, '-infinity'::timestamptz, '-infinity'::timestamptz,
    '00000000-0000-0000-0000-000000000000'::uuid, null::integer from lanes order by random())`;
const PICKED = "(graph_id, lane, available_at, created_at, run_id, lost_attempts)";

const firstLane = (condition: string): string => `(select ${LANE} as lane from threadloom.runs r
        where r.graph_id = hosted.graph_id and ${LANE} ${condition} order by ${LANE} limit 1)`;

interface LaneSql {
  graphIds: string;
  /** Where the walk over a graph's lanes begins: random, because a claim reads only some lanes. */
  fromLane: string;
  limit: string;
  /** Runs with this many lost attempts are no candidates. */
  lostBelow: string;
}

/** SQL conditions for runs that may start: on `graph_id`, on `lane` and on a run. */
interface LaneConditions {
  graph: string;
  lane: string;
  /** Condition for the first run of each lane; undefined: any run. `run`: its alias in SQL. */
  run?: (run: string) => string;
}
const ALL_LANES: LaneConditions = { graph: "true", lane: "true" };

/**
 * CTEs of a recursive `with`, read lazily: the first run of each lane, lanes in random order, then the second
 * of each, and so on. `lanes` walks the lanes of a graph in a ring from `fromLane` on. Every inner `limit` is a
 * literal: for a parameter the planner expects a tenth of all rows, and sorts them. The subquery of the graphs
 * avoids a plan for each number of graphs.
 */
export const candidates = (sql: LaneSql, may: LaneConditions = ALL_LANES): string => `lanes as (
  select hosted.graph_id, walk.lane from (
    select graph_id from unnest((select ${sql.graphIds})) as of_process(graph_id) where ${may.graph} order by random()) as hosted
  cross join lateral (
    with recursive walked(lane, beginning) as (
      select first.lane, first.lane from (
        ${firstLane(`>= ${sql.fromLane}`)} union all ${firstLane("is not null")} limit 1) as first
      union all
      select following.lane, walked.beginning from walked cross join lateral (
        ${firstLane("> walked.lane")} union all ${firstLane("is not null")} limit 1) as following
      where following.lane <> walked.beginning)
    select lane from walked where ${may.lane} and (lane <> ${LANE_OF_LATER_RUNS} or (
      select 1 from threadloom.runs r where r.graph_id = hosted.graph_id and ${IS_LATER} and r.available_at <= now()
      limit 1) is not null)) as walk
  limit ${LANES_AT_MOST}),
picked${PICKED} as (
  ${
    may.run === undefined
      ? BEGINNINGS
      : `select b.graph_id, b.lane, r.* from ${BEGINNINGS} as b${PICKED} cross join lateral ${startableAfter("b", may.run)} as r`
  }
  union all
  select picked.graph_id, picked.lane, r.* from picked cross join lateral ${runAfter("picked")} as r),
candidates as (
  select run_id from picked where lost_attempts < ${sql.lostBelow} limit (select ${sql.limit}) + ${SPARE_CANDIDATES})`;
