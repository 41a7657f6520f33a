import type { RunRow } from "../../../platform/database/tables.ts";
import {
  isContention,
  isPassing,
  mayHaveBeenCommitted,
  retryPassing,
} from "../../../platform/database/passing-faults.ts";
import { checkpointNotFound, sqlState, UNIQUE_VIOLATION } from "../../../platform/domain/errors.ts";
import { assertRecursionLimit } from "../../../platform/domain/recursion-limit.ts";
import type { Budgets } from "../../../engine/traces/budgets.ts";
import type { Worker } from "../../../engine/worker/worker.ts";
import type { CreationRights } from "../../../engine/queue/sql/create.ts";
import type { CreatedRun } from "../joining/results.ts";
import { createBatches, ThreadAppeared } from "./batch.ts";
import { createPlacing, type PlacingParts } from "./placing.ts";
import type { GrantedRequest, RequestedRun } from "./requests.ts";

const UNCERTAIN_SECONDS = 10;

/**
 * After a lost connection, a 503 could make the client store a second row, so `storeOnce` retries. If certainly nothing
 * was stored, the error is thrown at once, except a conflict of transactions.
 */
export const storeOnce = async <Stored>(
  find: () => Promise<Stored | undefined>,
  store: (isRetry: boolean) => Promise<Stored>,
): Promise<Stored> =>
  await retryPassing(async (isRetry) => (isRetry ? await find() : undefined) ?? (await store(isRetry)), {
    forMs: UNCERTAIN_SECONDS * 1_000,
    after(error, isRetry) {
      // The earlier try was committed meanwhile.
      const exists = isRetry && sqlState(error) === UNIQUE_VIOLATION;
      return exists || isContention(error) || mayHaveBeenCommitted(error) || (isRetry && isPassing(error));
    },
  });

export interface RunCreationParts extends PlacingParts {
  worker: Worker;
  processId: string;
  recursionLimitMax: number;
  /** Undefined: there are none. */
  budgets: Pick<Budgets, "assertRoom"> | undefined;
  /** Throws `invalid` for a forbidden webhook. */
  checkWebhook(webhook: string | undefined): void;
  checkpoints: {
    /** Throws `checkpointNotFound`. */
    assertExists(threadId: string, checkpointNs: string, checkpointId: string): Promise<void>;
  };
}

/** Tries after `ThreadAppeared`. */
const APPEARANCES_AT_MOST = 10;

export const createRunCreation = (parts: RunCreationParts) => {
  const { repository, worker, announcements, processId, recursionLimitMax, checkpoints, everyThread } = parts;
  const { budgets, checkWebhook } = parts;
  const place = createPlacing(parts);
  const storeAll = createBatches(parts);

  const assertStart = async (rights: CreationRights, { run, checkpointId }: RequestedRun): Promise<void> => {
    if (budgets !== undefined) await budgets.assertRoom(run);
    assertRecursionLimit(run.config, recursionLimitMax);
    if (run.webhook !== null) checkWebhook(run.webhook);
    if (checkpointId === undefined) return;
    // Checkpoints have no visibility of their own.
    if (await repository.threadIsHidden(rights.threads, run.threadId)) throw checkpointNotFound(checkpointId);
    await checkpoints.assertExists(run.threadId, "", checkpointId);
  };

  return {
    async create(rights: CreationRights, requested: RequestedRun): Promise<CreatedRun> {
      await assertStart(rights, requested);
      const find = async (): Promise<CreatedRun | undefined> => {
        const row = await repository.findToExecute(everyThread, requested.run);
        if (row === undefined) return undefined;
        const isHere = row.status === "running" && row.worker_id === processId;
        return { row, execution: isHere ? worker.adopt(row) : undefined };
      };
      return await storeOnce(find, (isRetry) => place(rights, requested, isRetry));
    },

    /** Stores all runs or none. They wait in the queue, because no lease may begin before the last run is stored. */
    async createAll(requested: readonly GrantedRequest[]): Promise<RunRow[]> {
      for (const one of requested) await assertStart(one.rights, one);
      const find = async (): Promise<RunRow[] | undefined> => {
        const stored: RunRow[] = [];
        for (const { run } of requested) {
          const row = await repository.find(everyThread, run);
          if (row !== undefined) stored.push(row);
        }
        return stored.length === 0 ? undefined : stored;
      };
      const rows = await storeOnce(find, async () => {
        for (let tries = 1; ; tries += 1) {
          try {
            return await storeAll(requested);
          } catch (error) {
            if (!(error instanceof ThreadAppeared) || tries === APPEARANCES_AT_MOST) throw error;
            // The try before may have been committed meanwhile.
            const stored = await find();
            if (stored !== undefined) return stored;
          }
        }
      });
      // After a lost answer, some runs may be deleted by now.
      const delays = new Map(requested.map(({ run }) => [run.runId, run.afterSeconds]));
      for (const row of rows) announcements.available(row, delays.get(row.run_id) ?? 0);
      return rows;
    },
  };
};

export type RunCreation = ReturnType<typeof createRunCreation>;
