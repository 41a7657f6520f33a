import type { Database, Queryable } from "../../platform/database/database.ts";
import type { ClaimedRunRow, RunRow } from "../../platform/database/tables.ts";
import type { AttemptSelector, RunOutcome, RunSelector } from "./attempts.ts";
import { advance, advanceForgotten, FIRST_THREAD, putBehind } from "./sql/advance.ts";
import { assertWritable } from "./sql/assert-writable.ts";
import { claim, claimWithin } from "./sql/claim.ts";
import { endedAs } from "./sql/ended-as.ts";
import { findToRecover } from "./sql/find-to-recover.ts";
import { findWaiting, type Waiting } from "./sql/find-waiting.ts";
import { giveUpAttempt, giveUpLease, handBack } from "./sql/requeue-attempt.ts";
import { LANES_AT_MOST } from "./sql/lanes.ts";
import { listAbandoned } from "./sql/list-abandoned.ts";
import { listEndedThreadless } from "./sql/list-ended-threadless.ts";
import { listUnknown } from "./sql/list-unknown.ts";
import { limitsRuns, type RunningLimits } from "./sql/running-limits.ts";
import { renew } from "./sql/renew.ts";
import { requeue } from "./sql/requeue.ts";

interface QueueOptions {
  /** A run is given up after this many lost attempts. */
  maxAttempts: number;
  graphIds: readonly string[];
  runningLimits?: RunningLimits | undefined;
}

/**
 * A run that lost this many processes gets a process of its own, because it may have killed them. From the first loss on,
 * the runs of a killed server would start one process each.
 */
const ALONE_AFTER = 2;
/** More than a run may lose. */
const ANY_LOST = 2 ** 31 - 1;

export const createQueue = (database: Database, { maxAttempts, graphIds, runningLimits }: QueueOptions) => {
  const limits = runningLimits && limitsRuns(runningLimits) ? runningLimits : undefined;
  /** The last attempt is alone in any case. */
  const aloneFrom = Math.min(ALONE_AFTER, Math.max(1, maxAttempts - 1));
  let checkedUpTo = FIRST_THREAD;
  return {
    graphIds,

    /** True: every run waits for a claim, because only claims count running runs. */
    limitsRuns: limits !== undefined,

    /** Runs per claim: one of each lane, or one in all if running runs are limited. */
    claimedAtOnce: limits === undefined ? LANES_AT_MOST : 1,

    findWaiting: (): Promise<Waiting> => findWaiting(database, { graphIds }),

    claim(
      workerId: string,
      leaseSeconds: number,
      limit: number,
      { withAlone = true }: { withAlone?: boolean } = {},
    ): Promise<ClaimedRunRow[]> {
      const claimed = {
        workerId,
        leaseSeconds,
        limit,
        graphIds,
        lostBelow: withAlone ? ANY_LOST : aloneFrom,
      };
      return limits === undefined ? claim(database, claimed) : claimWithin(database, { ...claimed, limits });
    },

    /** Whether the run's next attempt has a process of its own. */
    goesAlone: (run: Pick<RunRow, "lost_attempts">): boolean => run.lost_attempts >= aloneFrom,

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

    findToRecover: (leaseSeconds: number) => findToRecover(database, { leaseSeconds, graphIds }),

    requeueLost: (leaseSeconds: number) => requeue(database, { maxAttempts, leaseSeconds }),

    endedAs: (attempt: AttemptSelector, status: RunOutcome["status"]) => endedAs(database, attempt, status),

    assertWritable: () => assertWritable(database),

    listAbandoned: (leaseSeconds: number) => listAbandoned(database, { maxAttempts, leaseSeconds, graphIds }),
  };
};

export type Queue = ReturnType<typeof createQueue>;
