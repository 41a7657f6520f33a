export interface MissedHeartbeats {
  maxAttempts: number;
  leaseSeconds: number;
}

export const MISSED_HEARTBEAT_PARAMETERS = {
  maxAttempts: ["integer", (missed: MissedHeartbeats) => missed.maxAttempts],
  leaseSeconds: ["float8", (missed: MissedHeartbeats) => missed.leaseSeconds],
} as const;

/**
 * The holder is dead: its lease is over, or half over and the advisory lock of its LISTEN connection is free
 * (platform/database/signals.ts). The lock alone is not enough: a live process may lose that connection.
 * Index: runs_one_begun_per_thread (all running runs).
 */
export const missesHeartbeats = (sql: { readonly leaseSeconds: string }): string =>
  `r.status = 'running' and r.lease_until < now() + make_interval(secs => ${sql.leaseSeconds} / 2)
  and (r.lease_until < now() or not exists (
    select 1 from pg_locks l
    where l.locktype = 'advisory' and l.objsubid = 1
      and l.database = (select oid from pg_database where datname = current_database())
      and (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended(r.worker_id::text, 0)))`;
