import type { Database, Queryable } from "../../platform/database/database.ts";
import type { ClaimedRunRow, RunRow } from "../../platform/database/tables.ts";
import type { AttemptSelector, RunOutcome, RunSelector } from "./attempts.ts";
import { advance } from "./sql/advance.ts";
import { advanceForgotten, FIRST_THREAD } from "./sql/advance-forgotten.ts";
import { assertWritable } from "./sql/assert-writable.ts";
import { claim, claimWithin } from "./sql/claim.ts";
import { claimSuspects } from "./sql/claim-suspects.ts";
import { countSuspects } from "./sql/count-suspects.ts";
import { endedAs } from "./sql/ended-as.ts";
import { findToRecover } from "./sql/find-to-recover.ts";
import { findWaiting, type Waiting } from "./sql/find-waiting.ts";
import { giveUpLease } from "./sql/give-up-lease.ts";
import { giveUpAttempt } from "./sql/give-up-attempt.ts";
import { handBack } from "./sql/hand-back.ts";
import { LANES_AT_MOST } from "./sql/lanes.ts";
import { listAbandoned } from "./sql/list-abandoned.ts";
import { listEndedThreadless } from "./sql/list-ended-threadless.ts";
import { listUnknown } from "./sql/list-unknown.ts";
import { putBehind } from "./sql/put-behind.ts";
import { limitsRuns, type RunningLimits } from "./sql/running-limits.ts";
import { renew } from "./sql/renew.ts";
import { requeue } from "./sql/requeue.ts";

interface QueueOptions {
  /**
   * A run is given up after this many lost attempts; before its last attempt it is a suspect. Suspects must
   * not run together, or innocent runs would use up their attempts.
   */
  maxAttempts: number;
  graphIds: readonly string[];
  /** False: only the lease reveals a lost server (platform/database/accelerators.ts). Default: true. */
  seesDeaths?: boolean;
  runningLimits?: RunningLimits | undefined;
}

export const createQueue = (
  database: Database,
  { maxAttempts, graphIds, seesDeaths = true, runningLimits }: QueueOptions,
) => {
  const limits = runningLimits && limitsRuns(runningLimits) ? runningLimits : undefined;
  const suspectFrom = Math.max(1, maxAttempts - 1);
  let checkedUpTo = FIRST_THREAD;
  return {
    graphIds,

    /** True: every run waits for a claim, because only claims count running runs. */
    limitsRuns: limits !== undefined,

    /** Runs per claim: one of each lane, or one in all if running runs are limited. */
    claimedAtOnce: limits === undefined ? LANES_AT_MOST : 1,

    findWaiting: (): Promise<Waiting> => findWaiting(database, { graphIds, suspectFrom }),

    claim: (workerId: string, leaseSeconds: number, limit: number): Promise<ClaimedRunRow[]> =>
      limits === undefined
        ? claim(database, { workerId, leaseSeconds, limit, graphIds, suspectFrom })
        : claimWithin(database, { workerId, leaseSeconds, limit, graphIds, suspectFrom, limits }),

    /** Throws like `claim`. */
    async claimSuspect(
      workerId: string,
      leaseSeconds: number,
      restSeconds: number,
    ): Promise<ClaimedRunRow | undefined> {
      const claim = { workerId, leaseSeconds, limit: 1, graphIds, suspectFrom, restSeconds };
      return (await claimSuspects(database, claim))[0];
    },

    /** Whether `claim` leaves the run to `claimSuspect`. */
    isSuspect: (run: Pick<RunRow, "lost_attempts">): boolean => run.lost_attempts >= suspectFrom,

    /** Throws if the database is unreachable. */
    countSuspects: () => countSuspects(database, suspectFrom),

    advance: (threadId: string) => advance(database, [threadId]),

    putBehind: () => putBehind(database, graphIds),

    async advanceForgotten(): Promise<RunSelector[]> {
      const found = await advanceForgotten(database, checkedUpTo);
      ({ checkedUpTo } = found);
      return found.runs;
    },

    listUnknown: (workerId: string, known: readonly string[]) => listUnknown(database, workerId, known),

    renew: (attempts: readonly AttemptSelector[], leaseSeconds: number, connection: Queryable = database) =>
      renew(connection, attempts, leaseSeconds),

    handBack: (attempt: AttemptSelector) => handBack(database, attempt),

    giveUpAttempt: (attempt: AttemptSelector) => giveUpAttempt(database, attempt, maxAttempts),

    giveUpLease: (attempt: AttemptSelector) => giveUpLease(database, attempt),

    listEndedThreadless: (seconds: number) => listEndedThreadless(database, seconds),

    findToRecover: (leaseSeconds: number) => findToRecover(database, { leaseSeconds, graphIds, seesDeaths }),

    requeueLost: (leaseSeconds: number) => requeue(database, { maxAttempts, leaseSeconds, seesDeaths }),

    endedAs: (attempt: AttemptSelector, status: RunOutcome["status"]) => endedAs(database, attempt, status),

    assertWritable: () => assertWritable(database),

    listAbandoned: (leaseSeconds: number) =>
      listAbandoned(database, { maxAttempts, leaseSeconds, graphIds, seesDeaths }),
  };
};

export type Queue = ReturnType<typeof createQueue>;
