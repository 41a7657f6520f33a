import type { Visibility } from "../../../access/visibility.ts";
import type { Database } from "../../../platform/database/database.ts";
import type { RunRow } from "../../../platform/database/tables.ts";
import { checkpointNotFound } from "../../../platform/domain/errors.ts";
import { assertRecursionLimit } from "../../../platform/domain/recursion-limit.ts";
import type { Worker } from "../../../engine/worker/worker.ts";
import type { ThreadTtl } from "../../../graphs/project/thread-expiry.ts";
import type { CreationRights } from "../../../engine/queue/sql/create.ts";
import type { Announcements } from "../announcements.ts";
import type { CreatedRun } from "../joining/results.ts";
import type { RunRepository } from "../repository.ts";
import { createBatches, ThreadAppeared } from "./batch.ts";
import type { BehindOthersStore } from "./behind-others.ts";
import type { PendingLimits } from "./pending-limits.ts";
import { createPlacing } from "./placing.ts";
import type { GrantedRequest, RequestedRun } from "./requests.ts";
import { storeOnce } from "./store-once.ts";

export interface RunCreationParts {
  database: Database;
  repository: RunRepository;
  worker: Worker;
  announcements: Announcements;
  processId: string;
  /** For a look at what was just stored, whoever it is for. */
  everyThread: Visibility<"threads">;
  /** Of threads that a run creates and that stay after it. */
  threadTtl: ThreadTtl | undefined;
  /** See Config. */
  recursionLimitMax: number;
  /** Throws `invalid` for a webhook that may not be called. */
  checkWebhook(webhook: string | undefined): void;
  behindOthers: BehindOthersStore;
  limits: PendingLimits;
  checkpoints: {
    /** Throws `checkpointNotFound`. */
    assertExists(threadId: string, checkpointNs: string, checkpointId: string): Promise<void>;
  };
}

/** Each time another caller has made a thread that a batch was about to make. */
const APPEARANCES_AT_MOST = 10;

/** Stores runs under the per-thread rule and starts them, here at once if there is a free slot. */
export const createRunCreation = (parts: RunCreationParts) => {
  const { repository, worker, announcements, processId, recursionLimitMax, checkpoints, everyThread } = parts;
  const { checkWebhook } = parts;
  const place = createPlacing(parts);
  const storeAll = createBatches(parts);

  const assertStart = async (rights: CreationRights, { run, checkpointId }: RequestedRun): Promise<void> => {
    assertRecursionLimit(run.config, recursionLimitMax);
    if (run.webhook !== null) checkWebhook(run.webhook);
    if (checkpointId === undefined) return;
    // Checkpoints know no caller, and must not tell what a hidden thread has.
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

    /**
     * Creates runs, each on the thread that it names or on one of its own: all of them or, if one is refused, none. They
     * wait in the queue, since a lease must not begin before the last of them is stored.
     */
    async createAll(requested: readonly GrantedRequest[]): Promise<RunRow[]> {
      for (const one of requested) await assertStart(one.rights, one);
      const runIds = requested.map(({ run }) => run.runId);
      const find = async (): Promise<RunRow[] | undefined> => {
        const stored = await repository.findAll(everyThread, runIds);
        return stored.length === 0 ? undefined : stored;
      };
      const rows = await storeOnce(find, async () => {
        for (let tries = 1; ; tries += 1) {
          try {
            return await storeAll(requested);
          } catch (error) {
            if (!(error instanceof ThreadAppeared) || tries === APPEARANCES_AT_MOST) throw error;
            // Of the try before this one, if that was committed at the same moment.
            const stored = await find();
            if (stored !== undefined) return stored;
          }
        }
      });
      // By their ids: of runs that were found after a lost answer, some may be gone already.
      const delays = new Map(requested.map(({ run }) => [run.runId, run.afterSeconds]));
      for (const row of rows) announcements.available(row, delays.get(row.run_id) ?? 0);
      return rows;
    },
  };
};

export type RunCreation = ReturnType<typeof createRunCreation>;
