import { setTimeout as delay } from "node:timers/promises";
import type { Database } from "../database/database.ts";
import type { ClaimedRunRow, RunRow } from "../database/tables.ts";
import { isDatabaseUnavailable, mayHaveBeenCommitted } from "../database/unavailable.ts";
import type { Execution } from "../engine/execution.ts";
import type { Worker } from "../engine/worker.ts";
import { assistantNotFound, sqlState, threadBusy, threadNotFound, UNIQUE_VIOLATION } from "../lib/errors.ts";
import type { Announcements } from "./announcements.ts";
import { forgetRun } from "./forgetting.ts";
import { decideMultitask } from "./multitask.ts";
import type { NewRun, RunRepository } from "./repository.ts";
import type { RequestedRun } from "./requests.ts";
import type { CreatedRun } from "./results.ts";

export interface RunCreationParts {
  database: Database;
  repository: RunRepository;
  worker: Worker;
  announcements: Announcements;
  processId: string;
  checkpoints: {
    /** Throws `checkpointNotFound`. */
    assertExists(threadId: string, checkpointNamespace: string, checkpointId: string): Promise<void>;
    deleteRun(
      threadId: string,
      runId: string,
      transaction: Parameters<RunRepository["remove"]>[0],
    ): Promise<void>;
  };
}

/** How long a caller waits to hear whether its run was stored, when the database went away meanwhile. */
const UNCERTAIN_SECONDS = 10;
const RETRY_MS = 100;

/**
 * A connection that dies between commit and answer leaves open whether something is stored. Its caller would be told
 * 503 and ask again, and it would be there twice; so it is looked for until the database answers, and stored then if
 * it is not there. `store` is told whether it is called again.
 */
const storeOnce = async <Stored>(
  find: () => Promise<Stored | undefined>,
  store: (isRetry: boolean) => Promise<Stored>,
): Promise<Stored> => {
  const giveUpAt = Date.now() + UNCERTAIN_SECONDS * 1_000;
  for (let isRetry = false; ;) {
    try {
      return (isRetry ? await find() : undefined) ?? (await store(isRetry));
    } catch (error) {
      // Stored by the try before, at the same moment: it is found by the next.
      const isThere = isRetry && sqlState(error) === UNIQUE_VIOLATION;
      const isUncertain = mayHaveBeenCommitted(error) || (isRetry && isDatabaseUnavailable(error));
      if (!(isThere || isUncertain) || Date.now() > giveUpAt) throw error;
      isRetry = true;
      await delay(RETRY_MS);
    }
  }
};

/** Stores runs under the per-thread rule and starts them, here at once if there is a free slot. */
export const createRunCreation = (parts: RunCreationParts) => {
  const { database, repository, worker, announcements, processId, checkpoints } = parts;

  /**
   * The slow way, for a thread that is not idle: under the thread's lock, with the decision in multitask.ts.
   * Undefined if the thread became idle or was made meanwhile, so that the fast way is open again.
   */
  const createBehindOthers = async (
    run: NewRun,
    createIfMissing: boolean,
    isRetry: boolean,
  ): Promise<RunRow | undefined> => {
    let cancelled: ReturnType<typeof decideMultitask> | undefined;
    const row = await database.transaction(async (transaction) => {
      if (!(await repository.lockThread(transaction, run.threadId))) {
        if (createIfMissing) return undefined;
        throw threadNotFound(run.threadId);
      }
      // Under the thread's lock it is certain whether the try before was committed.
      const stored = isRetry ? await repository.find(run, transaction) : undefined;
      if (stored !== undefined) return stored;
      const unfinished = await repository.lockUnfinished(transaction, run.threadId);
      const decision = decideMultitask(
        run.multitaskStrategy,
        unfinished.map(({ run_id, status }) => ({ runId: run_id, status })),
      );
      if (decision.kind === "reject") throw threadBusy(run.threadId);
      cancelled = decision;
      const pending = decision.cancel
        .filter((other) => other.status === "pending")
        .map((other) => other.runId);
      const running = decision.cancel
        .filter((other) => other.status === "running")
        .map((other) => other.runId);
      if (run.multitaskStrategy === "rollback") {
        // One that was recovered from a dead worker is pending, and yet has checkpoints.
        for (const runId of pending) {
          await checkpoints.deleteRun(run.threadId, runId, transaction);
          await forgetRun(transaction, run.threadId, runId);
        }
        await repository.askToCancel(transaction, running, "rollback");
      } else if (run.multitaskStrategy === "interrupt") {
        await repository.endPending(transaction, pending);
        await repository.askToCancel(transaction, running, "interrupt");
      }
      const created = await repository.createBehindOthers(transaction, run, pending.length);
      // Deleted at this very moment. What was ended for the new run must not be without it.
      if (created === undefined) throw assistantNotFound(run.assistantId);
      return created;
    });
    if (cancelled?.kind === "accept") {
      for (const { runId, status, action } of cancelled.cancel) {
        if (status === "running") announcements.stop(runId, action);
        else announcements.ended(runId);
      }
    }
    return row;
  };

  const place = async (
    { run, placement, assistant }: RequestedRun,
    isRetry: boolean,
  ): Promise<CreatedRun> => {
    for (;;) {
      const reservation = run.afterSeconds > 0 ? undefined : worker.reserve();
      let row: ClaimedRunRow | undefined;
      let execution: Execution | undefined;
      try {
        row =
          placement.kind === "thread"
            ? await repository.createOnIdleThread(run, reservation)
            : await repository.createWithThread(run, {}, reservation);
        if (row === undefined && placement.kind === "thread" && placement.createIfMissing) {
          row = await repository.createWithThread(run, {}, reservation);
        }
      } finally {
        if (reservation !== undefined) {
          if (row?.status === "running") execution = worker.start(row);
          else worker.cancelReservation();
        }
      }
      if (row === undefined) {
        if (!(await repository.assistantExists(run.assistantId))) throw assistantNotFound(assistant);
        row = await createBehindOthers(
          run,
          placement.kind === "thread" && placement.createIfMissing,
          isRetry,
        );
        if (row === undefined) continue;
      }
      if (row.status === "pending") announcements.available(row.run_id, run.afterSeconds);
      return { row, execution };
    }
  };

  /** Empty if they are there already: the try before was committed at the same moment. */
  const storeAll = async (requested: readonly RequestedRun[]): Promise<RunRow[]> =>
    await database.transaction(async (transaction) => {
      const created: RunRow[] = [];
      for (const { run, assistant } of requested) {
        const row = await repository.createWithThread(run, {}, undefined, transaction);
        if (row !== undefined) created.push(row);
        else if (await repository.threadExists(run.threadId, transaction)) return [];
        else throw assistantNotFound(assistant);
      }
      return created;
    });

  const assertStart = async ({ run, checkpointId }: RequestedRun): Promise<void> => {
    if (checkpointId !== undefined) await checkpoints.assertExists(run.threadId, "", checkpointId);
  };

  return {
    async create(requested: RequestedRun): Promise<CreatedRun> {
      await assertStart(requested);
      const find = async (): Promise<CreatedRun | undefined> => {
        const row = await repository.find(requested.run);
        if (row === undefined) return undefined;
        const isHere = row.status === "running" && row.worker_id === processId;
        return { row, execution: isHere ? worker.adopt(row) : undefined };
      };
      return await storeOnce(find, (isRetry) => place(requested, isRetry));
    },

    /**
     * Creates runs with threads of their own: all of them or, if one is refused, none. They wait in the queue, since a
     * lease must not begin before the last of them is stored.
     */
    async createAll(requested: readonly RequestedRun[]): Promise<RunRow[]> {
      for (const one of requested) await assertStart(one);
      const runIds = requested.map(({ run }) => run.runId);
      const find = async (): Promise<RunRow[] | undefined> => {
        const stored = await repository.findAll(runIds);
        return stored.length === 0 ? undefined : stored;
      };
      const rows = await storeOnce(find, async () => {
        const created = await storeAll(requested);
        return created.length > 0 ? created : ((await find()) ?? []);
      });
      for (const [index, { run_id: runId }] of rows.entries()) {
        announcements.available(runId, requested[index]?.run.afterSeconds ?? 0);
      }
      return rows;
    },
  };
};

export type RunCreation = ReturnType<typeof createRunCreation>;
