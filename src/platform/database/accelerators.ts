import { sqlState } from "../domain/errors.ts";

/**
 * Some databases lack these features; the server then polls (docs/scaling.md). All processes need the same
 * switches, because a process without its lock would count as dead.
 */
export interface Accelerators {
  /** False: processes see changes within a second. */
  listen: boolean;
  /** Used by living processes and by migrations. */
  advisoryLocks: boolean;
  /** pg_stat_activity and pg_locks. */
  sessions: boolean;
}

export const ALL_ACCELERATORS: Accelerators = { listen: true, advisoryLocks: true, sessions: true };

export const acceleratorsOf = (
  config: Readonly<Record<"databaseListen" | "databaseAdvisoryLocks" | "databaseSessions", boolean>>,
): Accelerators => ({
  listen: config.databaseListen,
  advisoryLocks: config.databaseAdvisoryLocks,
  sessions: config.databaseSessions,
});

/** A dead process loses the lock of its listening connection. */
export const seesDeaths = ({ listen, advisoryLocks, sessions }: Accelerators): boolean =>
  listen && advisoryLocks && sessions;

/** unique_violation; an existing schema, table or object; a deadlock. */
const MADE_BY_OTHERS = new Set(["23505", "42P06", "42P07", "42710", "40P01"]);
/** A failed migration wraps PostgreSQL's error. */
const stateOf = (error: unknown): string | undefined =>
  sqlState(error) ?? (error instanceof Error ? sqlState(error.cause) : undefined);
const RACES_AT_MOST = 20;

/** Repeats a transaction if another starting process made the object first. The next try finds the object. */
export const againIfOthersWereFirst = async <Result>(work: () => Promise<Result>): Promise<Result> => {
  for (let race = 1; ; race += 1) {
    try {
      return await work();
    } catch (error) {
      if (race === RACES_AT_MOST || !MADE_BY_OTHERS.has(stateOf(error) ?? "")) throw error;
    }
  }
};
