import { askParts, type Database, type Queryable } from "../../platform/database/database.ts";
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
import { createWaitingParts, type WaitingParts } from "./waiting-parts.ts";

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
  /** Asked for waiting runs, and swept (own-parts.ts). Default: the whole database. */
  polled?: Database;
  swept?: Database;
}

/** A flag is true if it is true in one of the two parts. */
const either = <Found extends Record<keyof Found, boolean>>(one: Found, other: Found): Found => {
  const others = new Map<string, unknown>(Object.entries(other));
  const found = Object.entries(one).map(([key, has]) => [key, has === true || others.get(key) === true]);
  return Object.fromEntries(found) as Found;
};

export const createQueue = (
  database: Database,
  {
    maxAttempts,
    graphIds,
    seesDeaths = true,
    runningLimits,
    polled = database,
    swept = database,
  }: QueueOptions,
) => {
  const limits = runningLimits && limitsRuns(runningLimits) ? runningLimits : undefined;
  const suspectFrom = Math.max(1, maxAttempts - 1);
  let checkedUpTo = FIRST_THREAD;
  const waitingParts = (): WaitingParts => createWaitingParts(database);
  return {
    graphIds,

    /** True: every run waits for a claim, because only claims count running runs. */
    limitsRuns: limits !== undefined,

    /** Runs per claim: one of each lane, or one in all if running runs are limited. */
    claimedAtOnce: limits === undefined ? LANES_AT_MOST : 1,

    waitingParts,

    /** Notes the parts in which it finds runs or suspects. */
    async findWaiting(parts?: { runs: WaitingParts; suspects: WaitingParts }): Promise<Waiting> {
      const found = await askParts(polled, async (part) => {
        const waiting = await findWaiting(part, { graphIds, suspectFrom });
        if (parts !== undefined && waiting.runs) parts.runs.notePart(part);
        if (parts !== undefined && waiting.suspects) parts.suspects.notePart(part);
        return waiting;
      });
      return found.reduce(either);
    },

    claim: (
      workerId: string,
      leaseSeconds: number,
      limit: number,
      parts = waitingParts(),
    ): Promise<ClaimedRunRow[]> =>
      parts.claim(limit, (part, left) =>
        limits === undefined
          ? claim(part, { workerId, leaseSeconds, limit: left, graphIds, suspectFrom })
          : claimWithin(part, { workerId, leaseSeconds, limit: left, graphIds, suspectFrom, limits }),
      ),

    /** Throws like `claim`. */
    async claimSuspect(
      workerId: string,
      leaseSeconds: number,
      restSeconds: number,
      parts = waitingParts(),
    ): Promise<ClaimedRunRow | undefined> {
      const claimed = await parts.claim(1, (part, limit) =>
        claimSuspects(part, { workerId, leaseSeconds, limit, graphIds, suspectFrom, restSeconds }),
      );
      return claimed[0];
    },

    /** Whether `claim` leaves the run to `claimSuspect`. */
    isSuspect: (run: Pick<RunRow, "lost_attempts">): boolean => run.lost_attempts >= suspectFrom,

    /** Throws if the database is unreachable. */
    countSuspects: async () =>
      (await askParts(database, (part) => countSuspects(part, suspectFrom))).reduce(
        (sum, runs) => sum + runs,
        0,
      ),

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

    listEndedThreadless: (seconds: number) => listEndedThreadless(swept, seconds),

    findToRecover: async (leaseSeconds: number) =>
      (
        await askParts(database, (part) => findToRecover(part, { leaseSeconds, graphIds, seesDeaths }))
      ).reduce(either),

    requeueLost: (leaseSeconds: number) => requeue(database, { maxAttempts, leaseSeconds, seesDeaths }),

    endedAs: (attempt: AttemptSelector, status: RunOutcome["status"]) => endedAs(database, attempt, status),

    assertWritable: () => assertWritable(database),

    listAbandoned: (leaseSeconds: number) =>
      listAbandoned(database, { maxAttempts, leaseSeconds, graphIds, seesDeaths }),
  };
};

export type Queue = ReturnType<typeof createQueue>;
