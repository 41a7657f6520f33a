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

export interface QueueOptions {
  /**
   * Attempts that may lose their worker. Before the last of them a run is suspected of having killed its workers.
   * Suspects that lost theirs together must not be together again: the innocent would be given up, too.
   */
  maxAttempts: number;
  /** The graphs that this process hosts. */
  graphIds: readonly string[];
  /** True if left out. False: a lost worker is noticed by its lease alone (platform/database/accelerators.ts). */
  seesDeaths?: boolean;
  /** How many runs may be executed at the same time; undefined: as many as there are slots. */
  runningLimits?: RunningLimits | undefined;
}

/** The queue as a worker of this process sees it: the statements in sql/, for the graphs that it hosts. */
export const createQueue = (
  database: Database,
  { maxAttempts, graphIds, seesDeaths = true, runningLimits }: QueueOptions,
) => {
  const limits = runningLimits && limitsRuns(runningLimits) ? runningLimits : undefined;
  const suspectFrom = Math.max(1, maxAttempts - 1);
  /** Where the last look for forgotten runs ended. */
  let checkedUpTo = FIRST_THREAD;
  return {
    graphIds,

    /** Every run waits for a claim, since only claims count what runs. */
    limitsRuns: limits !== undefined,

    /** What `claim` may be asked for: one run of each lane that it looks at; one at all, where runs are counted. */
    claimedAtOnce: limits === undefined ? LANES_AT_MOST : 1,

    claim: (workerId: string, leaseSeconds: number, limit: number): Promise<ClaimedRunRow[]> =>
      limits === undefined
        ? claim(database, { workerId, leaseSeconds, limit, graphIds, suspectFrom })
        : claimWithin(database, { workerId, leaseSeconds, limit, graphIds, suspectFrom, limits }),

    /** One run that has a single attempt left, and has waited so long since it lost its worker. Throws like `claim`. */
    async claimSuspect(
      workerId: string,
      leaseSeconds: number,
      restSeconds: number,
    ): Promise<ClaimedRunRow | undefined> {
      const limit = 1;
      return (
        await claimSuspects(database, { workerId, leaseSeconds, limit, graphIds, suspectFrom, restSeconds })
      )[0];
    },

    /** Whether `claim` leaves a run to `claimSuspect`. */
    isSuspect: (run: Pick<RunRow, "lost_attempts">): boolean => run.lost_attempts >= suspectFrom,

    /** Those that wait, of all graphs. Throws what the database says if it is away. */
    countSuspects: () => countSuspects(database, suspectFrom),

    /** Lets the next run of a thread start, after one of it has ended while others wait. */
    advance: (threadId: string) => advance(database, [threadId]),

    putBehind: () => putBehind(database, graphIds),

    /** As `advance`, for threads on which nobody did: some of them, each time the next. Answers the runs that may start. */
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

    requeueExpired: (leaseSeconds: number) => requeue(database, { maxAttempts, leaseSeconds, seesDeaths }),

    endedAs: (attempt: AttemptSelector, status: RunOutcome["status"]) => endedAs(database, attempt, status),

    assertWritable: () => assertWritable(database),

    listAbandoned: (leaseSeconds: number) =>
      listAbandoned(database, { maxAttempts, leaseSeconds, graphIds, seesDeaths }),
  };
};

export type Queue = ReturnType<typeof createQueue>;
