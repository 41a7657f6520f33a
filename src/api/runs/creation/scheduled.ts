import type { Queryable } from "../../../platform/database/database.ts";
import { assistantNotFound, ThreadloomError } from "../../../platform/domain/errors.ts";
import { createBehindOthers, createWithThreads } from "../../../engine/queue/sql/create.ts";
import type { CreationRights } from "../../../engine/queue/sql/create.ts";
import {
  existingThreads,
  lockFreeThreads,
  type LockedThread,
} from "../../../engine/queue/sql/lock-threads.ts";
import { lockUnfinishedOf } from "../../../engine/queue/sql/lock-unfinished.ts";
import type { Replaced } from "./behind-others.ts";
import type { PlacingParts } from "./placing.ts";
import type { RequestedRun } from "./requests.ts";

export interface ScheduledRunParts extends Pick<
  PlacingParts,
  "announcements" | "behindOthers" | "limits" | "threadTtl"
> {
  /** False if the caller's runs per minute are used up. */
  takesRun(caller: string | null): boolean;
}

export type Scheduled =
  | "stored"
  | "rejected"
  /** Too many runs are pending on the thread or for the caller. */
  | "full"
  | "too often"
  /** The thread is locked or deleted. */
  | "not now"
  /** Its own thread exists, so the run was created before. */
  | "created before"
  | "no assistant";

export interface ScheduledRuns {
  outcomes: ReadonlyMap<string, Scheduled>;
  /** Call after the commit. */
  announce(): void;
}

export const createScheduledRuns = ({
  announcements,
  behindOthers,
  limits,
  takesRun,
  threadTtl,
}: ScheduledRunParts) => {
  const storeOnThread = async (
    transaction: Queryable,
    rights: CreationRights,
    { run }: RequestedRun,
    replaced: Replaced[],
  ): Promise<Scheduled> => {
    try {
      const stored = await behindOthers.store(transaction, rights, run);
      // Other runs may have been ended, so the caller rolls back.
      if (stored.row === undefined) throw assistantNotFound(run.assistantId);
      replaced.push(stored.replaced);
      return "stored";
    } catch (error) {
      // `reject` throws before any write.
      if (error instanceof ThreadloomError && error.kind === "conflict") return "rejected";
      // Only `enqueue` can exceed the limit, so no run was ended.
      if (error instanceof ThreadloomError && error.kind === "too_many") return "full";
      throw error;
    }
  };

  /** Stores the first run of each thread in one statement, if the run needs no decision. Returns the others. */
  const storeManyOnThreads = async (
    transaction: Queryable,
    rights: CreationRights,
    free: readonly RequestedRun[],
    { locked, outcomes }: { locked: ReadonlyMap<string, LockedThread>; outcomes: Map<string, Scheduled> },
  ): Promise<RequestedRun[]> => {
    const first = new Map<string, RequestedRun>();
    for (const one of free) if (!first.has(one.run.threadId)) first.set(one.run.threadId, one);
    const simple = [...first.values()].filter(
      ({ run }) => run.multitaskStrategy === "enqueue" || locked.get(run.threadId)?.isIdle === true,
    );
    const isFull = ({ run }: RequestedRun): boolean => {
      const atMost = limits.onThread(run);
      return atMost !== null && (locked.get(run.threadId)?.pending ?? 0) >= atMost;
    };
    for (const { run } of simple.filter(isFull)) outcomes.set(run.runId, "full");
    const runs = simple.filter((one) => !isFull(one)).map(({ run }) => run);
    for (const { runId } of runs) outcomes.set(runId, "no assistant");
    const creations = runs.map((run) => ({ run }));
    for (const { run_id } of await createBehindOthers(transaction, rights, creations))
      outcomes.set(run_id, "stored");
    const done = new Set(simple);
    return free.filter((one) => !done.has(one));
  };

  /**
   * Never waits for a thread's lock, because its holder may wait for this transaction. After `assistantNotFound` the
   * caller must roll back.
   */
  return async (
    transaction: Queryable,
    rights: CreationRights,
    requested: readonly RequestedRun[],
  ): Promise<ScheduledRuns> => {
    const outcomes = new Map<string, Scheduled>();
    const replaced: Replaced[] = [];

    const room = await limits.roomOfCallers(
      transaction,
      requested.map(({ run }) => run),
    );
    const taken = requested.filter(({ run: { runId, caller } }) => {
      const left = caller === null ? undefined : room.get(caller);
      if (left !== undefined && left <= 0) outcomes.set(runId, "full");
      else if (!takesRun(caller)) outcomes.set(runId, "too often");
      else {
        if (caller !== null && left !== undefined) room.set(caller, left - 1);
        return true;
      }
      return false;
    });

    const threadless = taken.filter(({ placement }) => placement.kind === "threadless");
    const runs = threadless.map(({ run }) => run);
    for (const { runId } of runs) outcomes.set(runId, "no assistant");
    for (const { run_id } of await createWithThreads(transaction, { rights, runs, ttl: threadTtl }))
      outcomes.set(run_id, "stored");
    const leftOut = runs.filter(({ runId }) => outcomes.get(runId) !== "stored");
    const existing = await existingThreads(
      transaction,
      leftOut.map(({ threadId }) => threadId),
    );
    for (const { runId, threadId } of leftOut)
      if (existing.has(threadId)) outcomes.set(runId, "created before");

    const onThread = taken.filter(({ placement }) => placement.kind === "thread");
    for (const { run } of onThread) outcomes.set(run.runId, "not now");
    const threadIds = onThread.map(({ run }) => run.threadId);
    const locked = await lockFreeThreads(transaction, rights.threads, threadIds);
    const free = onThread.filter(({ run }) => locked.has(run.threadId));
    const others = await storeManyOnThreads(transaction, rights, free, { locked, outcomes });
    const replacing = others.filter(({ run }) => run.multitaskStrategy !== "enqueue");
    await lockUnfinishedOf(
      transaction,
      replacing.map(({ run }) => run.threadId),
    );
    for (const one of others)
      outcomes.set(one.run.runId, await storeOnThread(transaction, rights, one, replaced));

    // Keeps only ids, because the caller may announce thousands of runs later.
    const stored = requested
      .filter(({ run }) => outcomes.get(run.runId) === "stored")
      .map(({ run }) => ({ run_id: run.runId, thread_id: run.threadId }));
    return {
      outcomes,
      announce() {
        for (const others of replaced) behindOthers.announce(announcements, others);
        for (const run of stored) announcements.available(run, 0);
      },
    };
  };
};

export type StoreScheduledRuns = ReturnType<typeof createScheduledRuns>;
