import type { Database } from "../database/database.ts";
import type { ClaimedRunRow, RunRow } from "../database/tables.ts";
import { advance, nextBehind } from "./behind.ts";

/*
 * How workers take runs that wait. What a claim costs depends on neither how many wait, nor on why they can't start:
 * 0.5 ms with 20,000 waiting behind one thread and 100,000 delayed, where a walk through all that waits took 37 and
 * 270 ms.
 *
 * Three things keep a run that waits from starting. Each is in the key of runs_claimable, or keeps it out:
 * - no process here has its graph: `graph_id`, of which a worker asks only for those that it hosts;
 * - it was asked for later: `available_at`;
 * - another run of its thread comes first: `behind`, which is true from the creation behind another run that could
 *   start or had started, until that one has ended and `advance` is called. Runs for later get it when they are due, by
 *   `putBehind`.
 *
 * `behind` only spares looking at runs. That a thread has one run at a time, in the order of their creation, is checked
 * by the claim itself, so a run that is wrongly not behind does no harm, and `advanceForgotten` finds one that is
 * wrongly behind, as a process leaves it that dies between the end of a run and `advance`.
 */

export interface ClaimsOptions {
  /** Attempts that may lose their worker, see createQueue. */
  suspectFrom: number;
  /** The graphs that this process hosts. */
  graphIds: readonly string[];
}

export const CLAIMED_COLUMNS = `r.run_id, r.thread_id, r.assistant_id, r.graph_id, r.status, r.metadata, r.config, r.context,
  r.kwargs, r.multitask_strategy, r.resumable, r.delete_thread, r.error, r.cancel_action, r.attempt, r.lost_attempts, r.worker_id,
  r.reader_id, r.lease_until, r.available_at, r.started_at, r.created_at, r.updated_at`;

/**
 * The oldest available run of a thread on which none runs. As scalar subqueries, which look up an index once per row:
 * "not exists" became an anti join over all pending runs while the table had no fresh statistics, 115 ms per claim at
 * 600 pending runs instead of 1. Indexes: runs_one_running_per_thread, runs_pending_of_thread.
 */
const IS_NEXT_OF_THREAD = `
  (select 1 from threadloom.runs x where x.thread_id = r.thread_id and x.status = 'running' limit 1) is null
  and (select x.run_id from threadloom.runs x
       where x.thread_id = r.thread_id and x.status = 'pending' and x.available_at <= now()
       order by x.created_at, x.run_id limit 1) = r.run_id`;

/** Rows that other claimers have locked at this moment are passed over; so many more are looked for. */
const SPARE_CANDIDATES = 20;

/**
 * $3 runs at most, in the order in which they became available. An index scan per graph and not one with
 * `graph_id = any(…)`, which would give no order. As an array of ids, since a join of what is locked was
 * planned as a scan of the table while it had no statistics. The graphs come from a subquery, so that the planner does not
 * look how many they are: with their number a plan of its own looked cheaper to it for each claim than the one that is kept,
 * and making it took 0.45 ms of the claim's 0.6.
 * Indexes: runs_claimable, runs_pkey.
 */
const NEXT = `select r.run_id from threadloom.runs r
  where r.status = 'pending' and r.run_id = any (array(
    select c.run_id from unnest((select $5::text[])) as hosted(graph_id) cross join lateral (
      select r.run_id, r.available_at, r.created_at from threadloom.runs r
      where r.status = 'pending' and not r.behind and r.graph_id = hosted.graph_id and r.available_at <= now()
        and r.lost_attempts < $4 and ${IS_NEXT_OF_THREAD}
      order by r.available_at, r.created_at, r.run_id limit $3 + ${SPARE_CANDIDATES}) as c
    order by c.available_at, c.created_at, c.run_id limit $3 + ${SPARE_CANDIDATES}))
  order by r.available_at, r.created_at, r.run_id
  limit $3
  for update skip locked`;

/** There are hardly ever any. $6: seconds since it lost its worker. Index: runs_pending_suspects. */
const NEXT_SUSPECTS = `select r.run_id from threadloom.runs r
  where r.status = 'pending' and r.available_at <= now() and r.lost_attempts > 0 and r.lost_attempts >= $4
    and r.graph_id = any($5::text[]) and r.updated_at <= now() - make_interval(secs => $6::float8)
    and ${IS_NEXT_OF_THREAD}
  order by r.created_at, r.run_id
  limit $3
  for update skip locked`;

/**
 * Takes runs. `skip locked` lets claimers pass each other; taking batches made 36,000/s with one claimer where single
 * claims made 16,000/s with 32. That two claimers can't both start runs of one thread is not left to this statement,
 * which reads a snapshot: the unique index runs_one_running_per_thread refuses the second, and its claimer tries again.
 * `starts_empty`: the thread has had a run that has not ended since before this snapshot, so only that run can write to
 * its state; a first attempt has not done so yet. Index: checkpoints_pkey.
 */
const claimStatement = (next: string): string => `with next as (${next})
update threadloom.runs r set status = 'running', attempt = r.attempt + 1, worker_id = $1,
  started_at = coalesce(r.started_at, now()),
  lease_until = now() + make_interval(secs => $2::float8), updated_at = now()
from next where r.run_id = next.run_id
returning ${CLAIMED_COLUMNS},
  r.attempt = 1 and not exists (select from threadloom.checkpoints c where c.thread_id = r.thread_id) as starts_empty`;
const CLAIM = claimStatement(NEXT);
const CLAIM_SUSPECTS = claimStatement(NEXT_SUSPECTS);

/**
 * Puts behind others what was asked for later, is due by now, and can't start. Looks at the first $2 runs of each graph, in
 * the order in which a claim goes through them: 50,000 such runs behind one thread made each claim take 190 ms. One whose
 * turn comes at this very moment is found by ADVANCE_FORGOTTEN. Index: runs_claimable.
 */
const PUT_BEHIND = `with blocked as (
  select r.run_id from threadloom.runs r
  where r.status = 'pending' and not r.behind and r.run_id = any (array(
    select r.run_id from unnest($1::text[]) as hosted(graph_id) cross join lateral (
      select c.run_id, c.thread_id, c.created_at, c.available_at from threadloom.runs c
      where c.status = 'pending' and not c.behind and c.graph_id = hosted.graph_id and c.available_at <= now()
      order by c.available_at, c.created_at, c.run_id limit $2) as r
    where r.available_at > r.created_at and not (${IS_NEXT_OF_THREAD})))
  for update skip locked)
update threadloom.runs r set behind = true from blocked where r.run_id = blocked.run_id`;
/** 10 ms of the database, in each sweep of each process. */
const RUNS_PER_LOOK = 2_000;

/** From thread to thread by the index runs_behind: $2 of them, those after $1. */
const ADVANCE_FORGOTTEN = `with recursive threads_behind as (
  (select r.thread_id, 1 as place from threadloom.runs r
   where r.status = 'pending' and r.behind and r.thread_id > $1 order by r.thread_id limit 1)
  union all
  select (select r.thread_id from threadloom.runs r
          where r.status = 'pending' and r.behind and r.thread_id > t.thread_id order by r.thread_id limit 1),
    t.place + 1
  from threads_behind t where t.thread_id is not null and t.place < $2),
advanced as (
  update threadloom.runs r set behind = false
  where r.status = 'pending' and r.run_id = any (array(
    select (${nextBehind("t.thread_id")}) from threads_behind t where t.thread_id is not null))
  returning r.run_id)
select (select thread_id from threads_behind where place = $2) as last,
  coalesce((select array_agg(run_id) from advanced), '{}') as run_ids`;
/** 3 ms of the database, in each sweep of each process. */
const THREADS_PER_LOOK = 500;
const FIRST_THREAD = "00000000-0000-0000-0000-000000000000";

export const createClaims = (database: Database, { suspectFrom, graphIds }: ClaimsOptions) => {
  /** Where the last look for forgotten runs ended. */
  let lookedUpTo = FIRST_THREAD;
  return {
    graphIds,

    /**
     * Of the graphs of this process only. Throws `unique_violation` (23505) if another claimer was faster on a thread;
     * the caller tries again.
     */
    async claim(workerId: string, leaseSeconds: number, limit: number): Promise<ClaimedRunRow[]> {
      return await database.query<ClaimedRunRow>(CLAIM, [
        workerId,
        leaseSeconds,
        limit,
        suspectFrom,
        graphIds,
      ]);
    },

    /** One run that has a single attempt left, and has waited so long since it lost its worker. Throws like `claim`. */
    async claimSuspect(
      workerId: string,
      leaseSeconds: number,
      restSeconds: number,
    ): Promise<RunRow | undefined> {
      const values = [workerId, leaseSeconds, 1, suspectFrom, graphIds, restSeconds];
      const rows = await database.query<RunRow>(CLAIM_SUSPECTS, values);
      return rows[0];
    },

    /** Whether `claim` leaves a run to `claimSuspect`. */
    isSuspect: (run: Pick<RunRow, "lost_attempts">): boolean => run.lost_attempts >= suspectFrom,

    /** Lets the next run of a thread start, after one of it has ended while others wait. */
    async advance(threadId: string): Promise<void> {
      await advance(database, [threadId]);
    },

    /** Keeps runs for later that are due, and can't start yet, out of the way of claims. */
    async putBehind(): Promise<void> {
      await database.query(PUT_BEHIND, [graphIds, RUNS_PER_LOOK]);
    },

    /** As `advance`, for threads on which nobody did: some of them, each time the next. Answers the runs that may start. */
    async advanceForgotten(): Promise<string[]> {
      const [row] = await database.query<{ last: string | null; run_ids: string[] }>(ADVANCE_FORGOTTEN, [
        lookedUpTo,
        THREADS_PER_LOOK,
      ]);
      lookedUpTo = row?.last ?? FIRST_THREAD;
      return row?.run_ids ?? [];
    },
  };
};
