import { sqlState } from "../domain/errors.ts";

/**
 * What makes this server quicker where the database has it, and what it is right without: then it polls, and waits for
 * leases to end. Distributed databases lack some or all of it (docs/scaling.md). All processes of a deployment have the
 * same switches: one that holds no lock would be taken for dead by those that look for locks.
 */
export interface Accelerators {
  /** LISTEN and NOTIFY, by which processes hear at once what they otherwise find within a second. */
  listen: boolean;
  /** Advisory locks: of a process that lives, and of one that migrates. */
  advisoryLocks: boolean;
  /** The lists of sessions and of their locks: pg_stat_activity, pg_locks. */
  sessions: boolean;
}

export const ALL_ACCELERATORS: Accelerators = { listen: true, advisoryLocks: true, sessions: true };

/** As the configuration says, under the names of its options. */
export const acceleratorsOf = (
  config: Readonly<Record<"databaseListen" | "databaseAdvisoryLocks" | "databaseSessions", boolean>>,
): Accelerators => ({
  listen: config.databaseListen,
  advisoryLocks: config.databaseAdvisoryLocks,
  sessions: config.databaseSessions,
});

/** Whether the death of a process is seen by the lock that went with its listening connection. */
export const seesDeaths = ({ listen, advisoryLocks, sessions }: Accelerators): boolean =>
  listen && advisoryLocks && sessions;

/** Another process was first: unique_violation; a schema, a table or an object that exists; or a deadlock with it. */
const MADE_BY_OTHERS = new Set(["23505", "42P06", "42P07", "42710", "40P01"]);
/** Of the error, or of what it was caused by: a migration that fails is named in an error of our own. */
const stateOf = (error: unknown): string | undefined =>
  sqlState(error) ?? (error instanceof Error ? sqlState(error.cause) : undefined);
const RACES_AT_MOST = 20;

/**
 * For what may be made once by one of several starting processes, where no advisory lock keeps the others waiting: does
 * it again when another one was first, and then finds it made. `work` is a transaction.
 */
export const againIfOthersWereFirst = async <Result>(work: () => Promise<Result>): Promise<Result> => {
  for (let race = 1; ; race += 1) {
    try {
      return await work();
    } catch (error) {
      if (race === RACES_AT_MOST || !MADE_BY_OTHERS.has(stateOf(error) ?? "")) throw error;
    }
  }
};
