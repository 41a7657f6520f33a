import type { Visibility } from "../../../access/visibility.ts";
import type { Database } from "../../../platform/database/database.ts";
import type { ClaimedRunRow, RunRow } from "../../../platform/database/tables.ts";
import { assistantNotFound, threadNotFound, threadTaken } from "../../../platform/domain/errors.ts";
import type { Execution } from "../../../engine/attempt/execution.ts";
import type { Worker } from "../../../engine/worker/worker.ts";
import type { ThreadTtl } from "../../../graphs/project/expiry.ts";
import { createOnIdleThread } from "../../../engine/queue/sql/create.ts";
import { createWithThread } from "../../../engine/queue/sql/create.ts";
import type { CreationRights, NewRun } from "../../../engine/queue/sql/create.ts";
import { lockThreads } from "../../../engine/queue/sql/lock-threads.ts";
import type { Announcements } from "../announcements.ts";
import type { CreatedRun } from "../joining/results.ts";
import type { RunRepository } from "../repository.ts";
import { NOTHING_REPLACED, type BehindOthersStore } from "./behind-others.ts";
import type { PendingLimits } from "./pending-limits.ts";
import type { RequestedRun } from "./requests.ts";

export interface PlacingParts {
  database: Database;
  repository: RunRepository;
  worker: Pick<Worker, "reserve" | "cancelReservation" | "start">;
  announcements: Announcements;
  behindOthers: BehindOthersStore;
  limits: PendingLimits;
  /** For reads of any caller's stored runs. */
  everyThread: Visibility<"threads">;
  threadTtl: ThreadTtl | undefined;
}

/** Starts the run if its thread is idle and this process has a free slot. `isRetry`: the run may be stored already. */
export const createPlacing = (parts: PlacingParts) => {
  const { database, repository, worker, announcements, behindOthers, limits, everyThread, threadTtl } = parts;

  /** Undefined if the thread is missing now: the caller creates it. */
  const placeBehindOthers = async (
    rights: CreationRights,
    run: NewRun,
    createIfMissing: boolean,
    isRetry: boolean,
  ): Promise<RunRow | undefined> => {
    let replaced = NOTHING_REPLACED;
    const row = await database.transaction(async (transaction) => {
      if ((await lockThreads(transaction, rights.threads, [run.threadId])).size === 0) {
        if (!createIfMissing) throw threadNotFound(run.threadId);
        if (await repository.threadIsHidden(rights.threads, run.threadId, transaction)) {
          throw threadTaken(run.threadId);
        }
        return undefined;
      }
      // Under the thread's lock it is certain whether the earlier try was committed.
      const stored = isRetry ? await repository.find(everyThread, run, transaction) : undefined;
      if (stored !== undefined) return stored;
      const created = await behindOthers.store(transaction, rights, run);
      // The assistant was deleted meanwhile. The rollback restores ended runs.
      if (created.row === undefined) throw assistantNotFound(run.assistantId);
      ({ replaced } = created);
      return created.row;
    });
    behindOthers.announce(announcements, replaced);
    return row;
  };

  const place = async (
    rights: CreationRights,
    { run, placement, assistant }: RequestedRun,
    isRetry: boolean,
  ): Promise<CreatedRun> => {
    // Counting needs another statement, so runs that start immediately skip it. An earlier try has counted.
    let roomChecked = isRetry || limits.ofCaller(run) === null;
    const assertRoom = async (): Promise<void> => {
      if (!roomChecked) await limits.assertRoomOfCaller(database, run);
      roomChecked = true;
    };
    for (;;) {
      const reservation = run.afterSeconds > 0 ? undefined : worker.reserve();
      let claimed: ClaimedRunRow | undefined;
      let execution: Execution | undefined;
      try {
        if (reservation === undefined) await assertRoom();
        claimed =
          placement.kind === "thread"
            ? await createOnIdleThread(database, rights, run, reservation, roomChecked)
            : await createWithThread(database, rights, run, reservation, threadTtl, roomChecked);
        if (claimed === undefined && placement.kind === "thread" && placement.createIfMissing) {
          claimed = await createWithThread(database, rights, run, reservation, threadTtl, roomChecked, true);
        }
      } finally {
        if (reservation !== undefined) {
          if (claimed?.status === "running") execution = worker.start(claimed);
          else worker.cancelReservation();
        }
      }
      let row: RunRow | undefined = claimed;
      if (row === undefined) {
        if (!(await repository.assistantExists(rights.assistants, run.assistantId)))
          throw assistantNotFound(assistant);
        await assertRoom();
        row = await placeBehindOthers(
          rights,
          run,
          placement.kind === "threadless" || placement.createIfMissing,
          isRetry,
        );
        if (row === undefined) continue;
      }
      if (row.status === "pending") announcements.available(row, run.afterSeconds);
      return { row, execution };
    }
  };

  return place;
};
