import { randomInt } from "node:crypto";
import type { Database, Queryable } from "../../../platform/database/database.ts";
import { nameParameters } from "../../../platform/database/named-parameters.ts";
import type { ClaimedRunRow } from "../../../platform/database/tables.ts";
import { EXECUTED_COLUMNS, openRuns } from "../columns.ts";
import { candidates } from "./lanes.ts";
import {
  BEGIN_COUNTING,
  fullOnes,
  LIMIT_PARAMETERS,
  LOCK_FOR_COUNTING,
  MAY_START,
  type RunningLimits,
} from "./running-limits.ts";
import { IS_NEXT_OF_THREAD } from "./next-of-thread.ts";

/** Who claims, and what. */
export interface Claim {
  workerId: string;
  leaseSeconds: number;
  /** How many runs at most. */
  limit: number;
  /** The graphs that this process hosts. */
  graphIds: readonly string[];
  /** Runs that have lost so many workers are left to `claimSuspects`. */
  suspectFrom: number;
}

export const CLAIM_PARAMETERS = {
  workerId: ["uuid", (claim: Claim) => claim.workerId],
  leaseSeconds: ["float8", (claim: Claim) => claim.leaseSeconds],
  limit: ["bigint", (claim: Claim) => claim.limit],
  graphIds: ["text[]", (claim: Claim) => claim.graphIds],
  suspectFrom: ["integer", (claim: Claim) => claim.suspectFrom],
} as const;

/** Lanes are hashes of 32 bits. */
const randomLane = (): number => randomInt(2 ** 32) - 2 ** 31;

const LANE_PARAMETERS = { ...CLAIM_PARAMETERS, fromLane: ["integer", () => randomLane()] } as const;

type Sql = Readonly<Record<keyof typeof CLAIM_PARAMETERS, string>>;

/**
 * The runs that are taken, locked one by one until there are `limit`. Nothing is sorted, so no row is looked at that is not
 * needed. The status is hidden from the planner, which otherwise may walk through an index of pending runs to find one. The limit
 * is hidden, too: a plan for its value looks cheaper than a kept one, and then each claim is planned, which takes five times as long.
 */
const next = (sql: Sql, may = "true"): string => `select taken.run_id
  from candidates cross join lateral (
    select r.run_id from threadloom.runs r
    where r.run_id = candidates.run_id and r.status || '' = 'pending' and ${may} and ${IS_NEXT_OF_THREAD}
    for update skip locked) as taken
  limit (select ${sql.limit})`;

/**
 * Takes the runs that the CTE `next` selects. That two claimers can't both start runs of one thread is not left to this statement,
 * which reads a snapshot: the unique index runs_one_running_per_thread refuses the second, and its claimer tries again.
 * `starts_empty`: the thread has had a run that has not ended since before this snapshot, so only that run can write to
 * its state; a first attempt has not done so yet. The array leaves the planner one way, to look up each run by its key: by
 * plain equality it merges with all runs where it takes the table for empty. Indexes: runs_pkey, checkpoints_pkey,
 * threads_pkey (`turn`).
 */
export const taking = (
  ctes: string,
  sql: Pick<Sql, "workerId" | "leaseSeconds">,
): string => `with recursive ${ctes}
update threadloom.runs r set status = 'running', attempt = r.attempt + 1, worker_id = ${sql.workerId},
  turn = (select t.turns - t.unfinished_runs + 1 from threadloom.threads t where t.thread_id = r.thread_id),
  started_at = coalesce(r.started_at, now()),
  lease_until = now() + make_interval(secs => ${sql.leaseSeconds}), updated_at = now()
from next where r.run_id = any(array[next.run_id])
returning ${EXECUTED_COLUMNS}, r.attempt = 1
    and (select 1 from threadloom.checkpoints c where c.thread_id = r.thread_id limit 1) is null as starts_empty`;

/**
 * pending → running. Indexes: runs_claimable, runs_pkey. A claim of one run reads 40 to 140 blocks, with 10 runs that wait
 * and with 50,000, whatever the statistics say (session-settings.ts) and whatever keeps the others from starting: see docs/scaling.md. `skip locked`
 * lets claimers pass each other.
 */
const CLAIM = nameParameters(LANE_PARAMETERS, (sql) =>
  taking(`${candidates(sql)},\nnext as (${next(sql)})`, sql),
);

/** The same, where a caller or a graph may have so many runs at the same time. One run at a time, since none is counted before. */
const CLAIM_WITHIN = nameParameters({ ...LANE_PARAMETERS, ...LIMIT_PARAMETERS }, (sql) =>
  taking(
    `${fullOnes(sql)},\n${candidates(sql, MAY_START)},\nnext as (${next(sql, MAY_START.run("r"))})`,
    sql,
  ),
);

/** Throws `unique_violation` (23505) if another claimer was faster on a thread; the caller tries again. */
export const claim = async (queryable: Queryable, claim: Claim): Promise<ClaimedRunRow[]> =>
  openRuns(queryable, await CLAIM.query<ClaimedRunRow>(queryable, claim));

/** One run, of a caller and a graph that have not as many running as they may. Throws like `claim`. */
export const claimWithin = async (
  database: Database,
  claim: Claim & { limits: RunningLimits },
): Promise<ClaimedRunRow[]> =>
  await database.transaction(async (transaction) => {
    await transaction.query(LOCK_FOR_COUNTING);
    const rows = await CLAIM_WITHIN.query<ClaimedRunRow>(transaction, { ...claim, limit: 1 });
    return openRuns(transaction, rows);
  }, BEGIN_COUNTING);
