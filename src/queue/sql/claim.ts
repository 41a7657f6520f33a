import type { Queryable } from "../../database/database.ts";
import { nameParameters } from "../../database/named-parameters.ts";
import type { ClaimedRunRow } from "../../database/tables.ts";
import { EXECUTED_COLUMNS } from "../columns.ts";
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

type Sql = Readonly<Record<keyof typeof CLAIM_PARAMETERS, string>>;

/** Rows that other claimers have locked at this moment are passed over; so many more are looked for. */
const SPARE_CANDIDATES = 20;

/**
 * `limit` runs at most, in the order in which they became available. An index scan per graph and not one with
 * `graph_id = any(…)`, which would give no order. As an array of ids, since a join of what is locked was
 * planned as a scan of the table while it had no statistics. The graphs come from a subquery, so that the planner does not
 * look how many they are: with their number a plan of its own looked cheaper to it for each claim than the one that is kept,
 * and making it took 0.45 ms of the claim's 0.6.
 */
const next = (sql: Sql): string => `select r.run_id from threadloom.runs r
  where r.status = 'pending' and r.run_id = any (array(
    select c.run_id from unnest((select ${sql.graphIds})) as hosted(graph_id) cross join lateral (
      select r.run_id, r.available_at, r.created_at from threadloom.runs r
      where r.status = 'pending' and not r.behind and r.graph_id = hosted.graph_id and r.available_at <= now()
        and r.lost_attempts < ${sql.suspectFrom} and ${IS_NEXT_OF_THREAD}
      order by r.available_at, r.created_at, r.run_id limit ${sql.limit} + ${SPARE_CANDIDATES}) as c
    order by c.available_at, c.created_at, c.run_id limit ${sql.limit} + ${SPARE_CANDIDATES}))
  order by r.available_at, r.created_at, r.run_id
  limit ${sql.limit}
  for update skip locked`;

/**
 * Takes the runs that `next` selects. That two claimers can't both start runs of one thread is not left to this statement,
 * which reads a snapshot: the unique index runs_one_running_per_thread refuses the second, and its claimer tries again.
 * `starts_empty`: the thread has had a run that has not ended since before this snapshot, so only that run can write to
 * its state; a first attempt has not done so yet. Indexes: checkpoints_pkey, threads_pkey (`turn`).
 */
export const taking = (
  next: string,
  sql: Pick<Sql, "workerId" | "leaseSeconds">,
): string => `with next as (${next})
update threadloom.runs r set status = 'running', attempt = r.attempt + 1, worker_id = ${sql.workerId},
  turn = (select t.turns - t.unfinished_runs + 1 from threadloom.threads t where t.thread_id = r.thread_id),
  started_at = coalesce(r.started_at, now()),
  lease_until = now() + make_interval(secs => ${sql.leaseSeconds}), updated_at = now()
from next where r.run_id = next.run_id
returning ${EXECUTED_COLUMNS},
  r.attempt = 1 and not exists (select from threadloom.checkpoints c where c.thread_id = r.thread_id) as starts_empty`;

/**
 * pending → running. Indexes: runs_claimable, runs_pkey. What a claim costs depends on neither how many runs wait, nor on
 * why they can't start: 0.5 ms with 20,000 waiting behind one thread and 100,000 delayed, where a walk through all that
 * waits took 37 and 270 ms. `skip locked` lets claimers pass each other; taking batches made 36,000/s with one claimer
 * where single claims made 16,000/s with 32.
 */
const CLAIM = nameParameters(CLAIM_PARAMETERS, (sql) => taking(next(sql), sql));

/** Throws `unique_violation` (23505) if another claimer was faster on a thread; the caller tries again. */
export const claim = async (queryable: Queryable, claim: Claim): Promise<ClaimedRunRow[]> =>
  await CLAIM.query<ClaimedRunRow>(queryable, claim);
