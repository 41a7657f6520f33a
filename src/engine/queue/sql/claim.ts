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
  /** Runs with this many lost attempts are left to `claimSuspects`. */
  suspectFrom: number;
}

export const CLAIM_PARAMETERS = {
  workerId: ["uuid", (claim: Claim) => claim.workerId],
  leaseSeconds: ["float8", (claim: Claim) => claim.leaseSeconds],
  limit: ["bigint", (claim: Claim) => claim.limit],
  graphIds: ["text[]", (claim: Claim) => claim.graphIds],
  suspectFrom: ["integer", (claim: Claim) => claim.suspectFrom],
} as const;

/** Lanes are 32-bit hashes. */
const randomLane = (): number => randomInt(2 ** 32) - 2 ** 31;

const LANE_PARAMETERS = { ...CLAIM_PARAMETERS, fromLane: ["integer", () => randomLane()] } as const;

type Sql = Readonly<Record<keyof typeof CLAIM_PARAMETERS, string>>;

/**
 * Without a sort, so no unneeded row is read. `r.status || ''` keeps the planner from an index of all pending
 * runs. The subquery hides the limit: otherwise the plan for its value looks cheaper than the cached plan,
 * and planning each claim takes five times as long.
 */
const next = (sql: Sql, may = "true"): string => `select taken.run_id
  from candidates cross join lateral (
    select r.run_id from threadloom.runs r
    where r.run_id = candidates.run_id and r.status || '' = 'pending' and ${may} and ${IS_NEXT_OF_THREAD}
    for update skip locked) as taken
  limit (select ${sql.limit})`;

/**
 * Two claimers may read the same snapshot, so only the unique index runs_one_running_per_thread keeps two
 * runs of a thread from starting. `starts_empty`: no other run can have written the thread's state, and this
 * is the run's first attempt. `any(array[…])` forces a lookup by key; with plain equality the planner merges
 * with all runs when it takes the table for empty. Indexes: runs_pkey, checkpoints_pkey, threads_pkey
 * (`turn`).
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
 * pending → running. Reads 40 to 140 blocks with 10 or 50,000 waiting runs, whatever the statistics say
 * (session-settings.ts, docs/scaling.md). Indexes: runs_claimable, runs_pkey.
 */
const CLAIM = statement(LANE_PARAMETERS, (sql) => taking(`${candidates(sql)},\nnext as (${next(sql)})`, sql));

/** One run at a time, because the statement does not count its own runs. */
const CLAIM_WITHIN = statement({ ...LANE_PARAMETERS, ...LIMIT_PARAMETERS }, (sql) =>
  taking(
    `${fullOnes(sql)},\n${candidates(sql, MAY_START)},\nnext as (${next(sql, MAY_START.run("r"))})`,
    sql,
  ),
);

/** Throws `unique_violation` (23505) if another claimer started a run of the same thread first. */
export const claim = async (queryable: Queryable, claim: Claim): Promise<ClaimedRunRow[]> =>
  openRuns(queryable, await CLAIM.query<ClaimedRunRow>(queryable, claim));

/** One run, within the limits. Throws like `claim`. */
export const claimWithin = async (
  database: Database,
  claim: Claim & { limits: RunningLimits },
): Promise<ClaimedRunRow[]> =>
  await database.transaction(async (transaction) => {
    await transaction.query(LOCK_FOR_COUNTING);
    const rows = await CLAIM_WITHIN.query<ClaimedRunRow>(transaction, { ...claim, limit: 1 });
    return openRuns(transaction, rows);
  }, BEGIN_COUNTING);
