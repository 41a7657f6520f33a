import type { Database, Queryable } from "../database/database.ts";
import type { CancelAction, ClaimedRunRow, RunRow, RunStatus, ThreadStatus } from "../database/tables.ts";
import type { JsonObject } from "../lib/json.ts";
import { toJsonb } from "../lib/jsonb.ts";
import { forgetRun } from "./forgetting.ts";
import { CLAIMED_COLUMNS, createClaims } from "./claims.ts";
import { HOSTED_GRAPHS } from "./hosting.ts";

/**
 * The statements by which workers keep runs and end them; claims.ts is how they take them. The table of runs is the
 * queue.
 *
 *              claim                      finish
 *   pending ───────────> running ───────────────────> success | error | timeout | interrupted
 *      ^  │                 │  lease expired, attempts left
 *      └──┼─────────────────┘
 *         └ cancel ──> interrupted            (rollback: the row is gone)
 *
 * `attempt` is the fencing token: it grows with every claim, every statement of an attempt names it, and a
 * statement that finds another attempt (or no running run) changes nothing. Times are the database's.
 * Locks are taken thread first, then run, everywhere.
 */

/** An attempt: one execution of a run by the holder of its lease. */
export interface AttemptSelector {
  runId: string;
  attempt: number;
}

/** How a run ended. */
export interface RunOutcome {
  status: Exclude<RunStatus, "pending" | "running">;
  /** `{error, message}` if it failed. */
  error: JsonObject | null;
  /** What the thread becomes unless another run waits. */
  threadStatus: Exclude<ThreadStatus, "busy">;
  /** `{task_id: [{id, value}]}` as JSON text. */
  interrupts: string;
}

/** A run whose worker went silent; `attempt` is the one that was lost. */
export type LostRunRow = Pick<RunRow, "run_id" | "thread_id" | "graph_id" | "attempt" | "lost_attempts">;

export interface HeartbeatRow {
  run_id: string;
  attempt: number;
  cancel_action: CancelAction | null;
}

/**
 * Renews the leases of all attempts of a process in one statement; what does not come back is lost. In order of
 * id, so that two such statements can't wait for each other.
 */
export const RENEW = `with mine as (
  select r.run_id from threadloom.runs r, unnest($1::uuid[], $2::int[]) as held(run_id, attempt)
  where r.run_id = held.run_id and r.attempt = held.attempt and r.status = 'running'
  order by r.run_id for no key update of r)
update threadloom.runs r set lease_until = now() + make_interval(secs => $3::float8)
from mine where r.run_id = mine.run_id
returning r.run_id, r.attempt, r.cancel_action`;

/**
 * Ends an attempt's run and frees its thread, in one statement. The thread's lock is taken first. `resting_status` by
 * name: while others wait the status stays `busy`, and they may be withdrawn, so that this was the last run.
 */
const FINISH = `with thread as (
  select thread_id from threadloom.threads where thread_id = $1 for no key update),
finished as (
  update threadloom.runs r set status = $4, error = $5::jsonb, lease_until = null, updated_at = now()
  from thread where r.thread_id = thread.thread_id and r.run_id = $2 and r.attempt = $3 and r.status = 'running'
    and ($8::uuid is null or exists (
      select from threadloom.checkpoints c
      where c.thread_id = $1 and c.checkpoint_ns = $9::text and c.checkpoint_id = $8::uuid))
  returning r.run_id)
update threadloom.threads t set unfinished_runs = t.unfinished_runs - 1,
  status = case when t.unfinished_runs > 1 then 'busy' else $6 end, resting_status = $6,
  interrupts = $7::jsonb, error = $5::jsonb, updated_at = now(), state_updated_at = now(),
  expires_at = now() + t.ttl_minutes * interval '1 minute'
from finished where t.thread_id = $1
returning t.unfinished_runs`;

/**
 * An attempt whose holder went silent: its lease is over, or half over and the holder's session is gone (the lock
 * that it holds on its LISTEN connection, see database/signals.ts). The lock alone would not do: a connection may be
 * lost while the process lives, but then its heartbeat keeps the lease fresh. $1: attempts, $2: seconds of a lease.
 */
const IS_SILENT = `r.status = 'running' and r.lease_until < now() + make_interval(secs => $2::float8 / 2)
  and (r.lease_until < now() or not exists (
    select 1 from pg_locks l
    where l.locktype = 'advisory' and l.objsubid = 1
      and l.database = (select oid from pg_database where datname = current_database())
      and (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended(r.worker_id::text, 0)))`;

export interface QueueOptions {
  /**
   * Attempts that may lose their worker. Before the last of them a run is suspected of having killed its workers.
   * Suspects that lost theirs together must not be together again: the innocent would be given up, too.
   */
  maxAttempts: number;
  /** The graphs that this process hosts. */
  graphIds: readonly string[];
}

export const createQueue = (database: Database, { maxAttempts, graphIds }: QueueOptions) => {
  const suspectFrom = Math.max(1, maxAttempts - 1);
  return {
    ...createClaims(database, { suspectFrom, graphIds }),

    /**
     * Runs that a worker holds and does not know: their claim was committed, and its answer lost. Not those of the
     * last second, whose answers may still be on their way. Index: runs_one_running_per_thread (all that runs).
     */
    async listUnknown(workerId: string, known: readonly string[]): Promise<ClaimedRunRow[]> {
      return await database.query<ClaimedRunRow>(
        `select ${CLAIMED_COLUMNS} from threadloom.runs r where r.status = 'running' and r.worker_id = $1
           and not r.run_id = any($2::uuid[]) and r.updated_at < now() - interval '1 second'
         order by r.created_at, r.run_id`,
        [workerId, known],
      );
    },

    async renew(
      attempts: readonly AttemptSelector[],
      leaseSeconds: number,
      connection: Queryable = database,
    ) {
      return await connection.query<HeartbeatRow>(RENEW, [
        attempts.map((held) => held.runId),
        attempts.map((held) => held.attempt),
        leaseSeconds,
      ]);
    },

    /**
     * Ends the run of an attempt. Undefined if the attempt no longer holds the run, or if `lastCheckpoint` is not there:
     * a crash of the database has taken it, so the run is not at its end. Otherwise the number of runs that wait on the
     * thread.
     */
    async finish(
      threadId: string,
      { runId, attempt }: AttemptSelector,
      outcome: RunOutcome,
      {
        connection = database,
        lastCheckpoint,
      }: {
        connection?: Queryable;
        lastCheckpoint?: { checkpointNs: string; checkpointId: string } | undefined;
      } = {},
    ): Promise<{ waiting: number } | undefined> {
      const rows = await connection.query<{ unfinished_runs: number }>(FINISH, [
        threadId,
        runId,
        attempt,
        outcome.status,
        outcome.error === null ? null : toJsonb(JSON.stringify(outcome.error)).jsonb,
        outcome.threadStatus,
        // What a graph shows may hold NUL; the checkpoint has it exactly.
        toJsonb(outcome.interrupts).jsonb,
        lastCheckpoint?.checkpointId ?? null,
        lastCheckpoint?.checkpointNs ?? null,
      ]);
      return rows[0] && { waiting: rows[0].unfinished_runs };
    },

    /**
     * Gives an attempt's run back to the queue, to be executed by another process from its last checkpoint. One that is
     * to be cancelled stays with the attempt, and what was asked for is answered: in the queue nobody would hear of it.
     */
    async handBack({ runId, attempt }: AttemptSelector): Promise<CancelAction | undefined> {
      const handedBack = await database.query(
        `update threadloom.runs set status = 'pending', worker_id = null, lease_until = null, updated_at = now()
       where run_id = $1 and attempt = $2 and status = 'running' and cancel_action is null returning run_id`,
        [runId, attempt],
      );
      if (handedBack.length > 0) return undefined;
      const kept = await database.query<{ cancel_action: CancelAction | null }>(
        "select cancel_action from threadloom.runs where run_id = $1 and attempt = $2 and status = 'running'",
        [runId, attempt],
      );
      return kept[0]?.cancel_action ?? undefined;
    },

    /**
     * Ends an attempt's lease now. Recovery, of any process, finds the run as one whose worker died: the attempt counts as
     * lost, and a run that is to be cancelled, or has no attempts left, is ended. Handed back, it would go from process to
     * process for ever, and end each of them.
     */
    async giveUpLease({ runId, attempt }: AttemptSelector): Promise<void> {
      await database.query(
        `update threadloom.runs set lease_until = now() where run_id = $1 and attempt = $2 and status = 'running'`,
        [runId, attempt],
      );
    },

    /** The fencing check inside a transaction: locks the run; undefined if the attempt no longer holds it. */
    async lockAttempt(
      transaction: Queryable,
      { runId, attempt }: AttemptSelector,
    ): Promise<{ readerId: string | null } | undefined> {
      const rows = await transaction.query<{ reader_id: string | null }>(
        "select reader_id from threadloom.runs where run_id = $1 and attempt = $2 and status = 'running' for update",
        [runId, attempt],
      );
      return rows[0] && { readerId: rows[0].reader_id };
    },

    /** Threads of threadless runs that ended more than `seconds` ago. Index: runs_ended_threadless. */
    async listEndedThreadless(seconds: number, limit: number): Promise<string[]> {
      const rows = await database.query<{ thread_id: string }>(
        `select thread_id from threadloom.runs where delete_thread and status not in ('pending', 'running')
         and updated_at < now() - make_interval(secs => $1::float8)
       order by updated_at limit $2`,
        [seconds, limit],
      );
      return rows.map((row) => row.thread_id);
    },

    /** Takes a run off its thread as if it had never been; the caller holds both locks. */
    async removeRolledBack(transaction: Queryable, threadId: string, runId: string): Promise<void> {
      await forgetRun(transaction, threadId, runId);
      // The thread's interrupts, error and resting status still are those from before the run: only an end writes them.
      await transaction.query(
        `update threadloom.threads set unfinished_runs = unfinished_runs - 1, updated_at = now(),
         expires_at = now() + ttl_minutes * interval '1 minute',
         status = case when unfinished_runs > 1 then 'busy' else resting_status end
       where thread_id = $1`,
        [threadId],
      );
    },

    /**
     * Runs whose holder went silent go back to the queue in one statement, if they have attempts left and nobody
     * asked to cancel them. Index: runs_one_running_per_thread (all that runs).
     */
    async requeueExpired(leaseSeconds: number): Promise<LostRunRow[]> {
      return await database.query<LostRunRow>(
        `with expired as (
         select r.run_id from threadloom.runs r where ${IS_SILENT} and r.lost_attempts + 1 < $1 and r.cancel_action is null
         order by r.run_id for update skip locked)
       update threadloom.runs r set status = 'pending', worker_id = null, lease_until = null, updated_at = now(),
         lost_attempts = r.lost_attempts + 1
       from expired where r.run_id = expired.run_id
       returning r.run_id, r.thread_id, r.graph_id, r.attempt, r.lost_attempts`,
        [maxAttempts, leaseSeconds],
      );
    },

    /** Whether the run's row says that this attempt ended it so; `"gone"` if there is no row. */
    async endedAs(
      { runId, attempt }: AttemptSelector,
      status: RunOutcome["status"],
    ): Promise<boolean | "gone"> {
      const rows = await database.query<{ status: RunStatus; attempt: number }>(
        "select status, attempt from threadloom.runs where run_id = $1",
        [runId],
      );
      return rows[0] === undefined ? "gone" : rows[0].status === status && rows[0].attempt === attempt;
    },

    async isThreadGone(threadId: string): Promise<boolean> {
      return (
        (await database.query("select from threadloom.threads where thread_id = $1", [threadId])).length === 0
      );
    },

    /** Throws if the database is away or takes no writes, as a standby: then no lease can be renewed. Changes nothing. */
    async assertWritable(): Promise<void> {
      await database.query("update threadloom.runs set attempt = attempt where false");
    },

    /**
     * Runs whose holder went silent and that must not be tried again. Where an end leaves the thread only the run's
     * graph can tell, so this is left to who hosts it, if any worker that lives does.
     */
    async listAbandoned(leaseSeconds: number): Promise<RunRow[]> {
      return await database.query<RunRow>(
        `select ${CLAIMED_COLUMNS} from threadloom.runs r
       where ${IS_SILENT} and (r.lost_attempts + 1 >= $1 or r.cancel_action is not null)
         and (r.graph_id = any($3::text[]) or not r.graph_id in (${HOSTED_GRAPHS}))
       order by r.run_id`,
        [maxAttempts, leaseSeconds, graphIds],
      );
    },
  };
};

export type Queue = ReturnType<typeof createQueue>;
