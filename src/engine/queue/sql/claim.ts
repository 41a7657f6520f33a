import { randomInt } from "node:crypto";
import type { Database, Queryable } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";
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

export interface Claim {
  workerId: string;
  leaseSeconds: number;
  limit: number;
  graphIds: readonly string[];
  /** Runs with this many lost attempts are left out. */
  lostBelow: number;
}

const CLAIM_PARAMETERS = {
  workerId: ["uuid", (claim: Claim) => claim.workerId],
  leaseSeconds: ["float8", (claim: Claim) => claim.leaseSeconds],
  limit: ["bigint", (claim: Claim) => claim.limit],
  graphIds: ["text[]", (claim: Claim) => claim.graphIds],
  lostBelow: ["integer", (claim: Claim) => claim.lostBelow],
} as const;

/** Lanes are 32-bit hashes. */
const randomLane = (): number => randomInt(2 ** 32) - 2 ** 31;

const LANE_PARAMETERS = { ...CLAIM_PARAMETERS, fromLane: ["integer", () => randomLane()] } as const;

type Sql = Readonly<Record<keyof typeof CLAIM_PARAMETERS, string>>;

/**
 * Reads candidates until the limit is reached; `r.status || ''` keeps the planner from an index of all pending runs.
 * The subquery hides the limit's value, or PostgreSQL would plan each claim anew (five times slower).
 */
const next = (sql: Sql, may = "true"): string => `select taken.run_id
  from candidates cross join lateral (
    select r.run_id from threadloom.runs r
    where r.run_id = candidates.run_id and r.status || '' = 'pending' and ${may} and ${IS_NEXT_OF_THREAD}
    for update skip locked) as taken
  limit (select ${sql.limit})`;

/**
 * Two claimers may read the same snapshot, so only the index runs_one_begun_per_thread keeps two runs of a
 * thread from starting. `any(array[…])` forces a lookup by key, even if the planner takes the table for
 * empty. `starts_empty`: a first attempt on a thread without checkpoints. Indexes: runs_pkey,
 * checkpoints_pkey, threads_pkey (`turn`).
 */
const taking = (ctes: string, sql: Pick<Sql, "workerId" | "leaseSeconds">): string => `with recursive ${ctes}
update threadloom.runs r set status = 'running', attempt = r.attempt + 1, worker_id = ${sql.workerId},
  turn = (select t.turns - t.unfinished_runs + 1 from threadloom.threads t where t.thread_id = r.thread_id),
  started_at = coalesce(r.started_at, now()),
  lease_until = now() + make_interval(secs => ${sql.leaseSeconds}), updated_at = now()
from next where r.run_id = any(array[next.run_id])
returning ${EXECUTED_COLUMNS}, r.attempt = 1
    and (select 1 from threadloom.checkpoints c where c.thread_id = r.thread_id limit 1) is null as starts_empty`;

/**
 * pending → running. Costs the database 0.7 ms of CPU with 10 waiting runs, and 2 ms with 5,000 or 50,000 of 60 callers.
 * Indexes: runs_claimable, runs_pkey.
 */
const CLAIM = statement(LANE_PARAMETERS, (sql) => taking(`${candidates(sql)},\nnext as (${next(sql)})`, sql));

/** One run per claim, because the statement does not count the runs that it starts. */
const CLAIM_WITHIN = statement({ ...LANE_PARAMETERS, ...LIMIT_PARAMETERS }, (sql) =>
  taking(`${fullOnes(sql)},\n${candidates(sql, MAY_START)},\nnext as (${next(sql, MAY_START.run)})`, sql),
);

/** Throws `unique_violation` (23505) if another claimer started a run of the same thread first. */
export const claim = async (queryable: Queryable, claim: Claim): Promise<ClaimedRunRow[]> =>
  openRuns(queryable, await CLAIM.query<ClaimedRunRow>(queryable, claim));

/** Throws like `claim`. */
export const claimWithin = async (
  database: Database,
  claim: Claim & { limits: RunningLimits },
): Promise<ClaimedRunRow[]> =>
  await database.transaction(async (transaction) => {
    await transaction.query(LOCK_FOR_COUNTING);
    const rows = await CLAIM_WITHIN.query<ClaimedRunRow>(transaction, { ...claim, limit: 1 });
    return openRuns(transaction, rows);
  }, BEGIN_COUNTING);
