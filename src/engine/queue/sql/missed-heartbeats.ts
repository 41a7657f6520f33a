export interface MissedHeartbeats {
  /** Attempts that a run may lose. */
  maxAttempts: number;
  leaseSeconds: number;
  /** Whether the lists of sessions and locks are there to be looked at (platform/database/accelerators.ts). */
  seesDeaths: boolean;
}

export const MISSED_HEARTBEAT_PARAMETERS = {
  maxAttempts: ["integer", (missed: MissedHeartbeats) => missed.maxAttempts],
  leaseSeconds: ["float8", (missed: MissedHeartbeats) => missed.leaseSeconds],
} as const;

/**
 * Whether the holder of `threadloom.runs r` went silent: its lease is over, or half over and the holder's session is gone
 * (the lock that it holds on its LISTEN connection, see platform/database/signals.ts). The lock alone would not do: a connection
 * may be lost while the process lives, but then its heartbeat keeps the lease fresh. Without `seesDeaths` the lease alone
 * tells: a death is noticed after the whole of it. Index: runs_one_running_per_thread (all that runs).
 */
export const missesHeartbeats = (sql: { readonly leaseSeconds: string }, seesDeaths: boolean): string =>
  !seesDeaths
    ? // PostgreSQL refuses a parameter that is not used.
      `r.status = 'running' and r.lease_until < now() and ${sql.leaseSeconds} > 0`
    : `r.status = 'running' and r.lease_until < now() + make_interval(secs => ${sql.leaseSeconds} / 2)
  and (r.lease_until < now() or not exists (
    select 1 from pg_locks l
    where l.locktype = 'advisory' and l.objsubid = 1
      and l.database = (select oid from pg_database where datname = current_database())
      and (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended(r.worker_id::text, 0)))`;
