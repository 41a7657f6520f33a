import { query } from "./query.ts";

/**
 * For servers that are killed: long enough that a machine busy with other tests costs none of those that live their runs.
 * `endLeases` spares the wait for its end.
 */
export const PATIENT_LEASES = { leaseSeconds: 10, heartbeatSeconds: 0.5, sweepSeconds: 0.3 };
/** The same for processes of their own. */
export const PATIENT_LEASES_ENVIRONMENT = {
  LEASE_SECONDS: String(PATIENT_LEASES.leaseSeconds),
  HEARTBEAT_SECONDS: String(PATIENT_LEASES.heartbeatSeconds),
  SWEEP_SECONDS: String(PATIENT_LEASES.sweepSeconds),
};

/** As if the time of all leases were over, when every server that executes something is dead or stands still. */
export const endLeases = async (of: { connectionString: string }): Promise<void> => {
  await query(
    of,
    "update threadloom.runs set lease_until = now() - interval '1 second' where status = 'running'",
  );
};
