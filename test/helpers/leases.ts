import { query } from "./query.ts";

/**
 * For servers that are killed: long enough that a busy machine costs no living server its runs. `endLeases` makes waiting for the end
 * unnecessary.
 */
export const PATIENT_LEASES = { leaseSeconds: 10, heartbeatSeconds: 0.5, sweepSeconds: 0.3 };
/** The same for processes of their own. */
export const PATIENT_LEASES_ENVIRONMENT = { LEASE_SECONDS: String(PATIENT_LEASES.leaseSeconds) };

/** Ends all leases, when every server that executes runs is dead or stopped. */
export const endLeases = async (of: { connectionString: string }): Promise<void> => {
  await query(
    of,
    "update threadloom.runs set lease_until = now() - interval '1 second' where status = 'running'",
  );
};
