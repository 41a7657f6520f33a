import type { Authorize } from "../../../access/authorize.ts";
import { THE_SERVER, type Caller } from "../../../access/caller.ts";
import type { Visibility } from "../../../access/visibility.ts";
import type { CheckpointStorage, ThreadStorage } from "../../../state/checkpoints/types.ts";
import type { Database } from "../../../platform/database/database.ts";
import { threadNotFound } from "../../../platform/domain/errors.ts";
import type { RunEnd } from "../../../engine/queue/attempts.ts";
import type { RunEnds } from "../../../engine/queue/ending.ts";
import type { ThreadPrune } from "../schemas.ts";
import type { StateRepository } from "../state/repository.ts";
import { deleteIdle, lockForDeletion, lockForPrune } from "./repository.ts";

export interface UpkeepServiceOptions {
  database: Database;
  authorize: Authorize;
  states: Pick<StateRepository, "standing">;
  checkpoints: Pick<CheckpointStorage, "deleteThread" | "keepLatest" | "storage">;
  ends: Pick<RunEnds, "deleteThreads">;
  /** Told the ids of threads that are gone, whose runs' work can stop, and of the runs that ended so. */
  onThreadsDeleted?: ((threadIds: readonly string[], ended: readonly RunEnd[]) => void) | undefined;
}

/** Removes threads, or what of them is old, when somebody says so; what has expired is removed by retention.ts. */
export const createUpkeepService = (options: UpkeepServiceOptions) => {
  const { database, authorize, states, checkpoints, ends, onThreadsDeleted } = options;

  /** With their runs, even those in progress. */
  const remove = async (
    visibility: Visibility<"threads">,
    threadIds: readonly string[],
  ): Promise<string[]> => {
    const { gone, ended } = await database.transaction(async (transaction) => {
      const locked = await lockForDeletion(transaction, visibility, threadIds);
      return { gone: locked, ended: await ends.deleteThreads(transaction, locked) };
    });
    if (gone.length > 0) onThreadsDeleted?.(gone, ended);
    return gone;
  };

  /** Those without a run in progress. The row first, then what it leaves behind. */
  const removeIdle = async (
    visibility: Visibility<"threads">,
    threadIds: readonly string[],
  ): Promise<string[]> => {
    const deleted = await database.transaction(async (transaction) => {
      const gone = await deleteIdle(transaction, visibility, threadIds);
      for (const threadId of gone) await checkpoints.deleteThread(threadId, transaction);
      return gone;
    });
    if (deleted.length > 0) onThreadsDeleted?.(deleted, []);
    return deleted;
  };

  return {
    /** Deletes a thread with its runs, even one in progress: its attempt can write nothing any more. */
    async delete(caller: Caller, threadId: string): Promise<void> {
      const visibility = await authorize(caller, "threads", "delete", { thread_id: threadId });
      if ((await remove(visibility, [threadId])).length === 0) throw threadNotFound(threadId);
    },

    /** Deletes threads; ids that are gone already are no error. Answers those that were there. */
    async deleteMany(caller: Caller, threadIds: readonly string[]): Promise<string[]> {
      const visibility = await authorize(caller, "threads", "delete", { thread_ids: threadIds });
      return await remove(visibility, threadIds);
    },

    /** Takes back a thread that was just made, whatever its maker may do with it now that it is there. */
    async takeBack(threadId: string): Promise<void> {
      const visibility = await authorize(THE_SERVER, "threads", "delete", { thread_id: threadId });
      await remove(visibility, [threadId]);
    },

    /** How many threads were deleted, or reduced to their latest state. Those with a run in progress stay. */
    async prune(
      caller: Caller,
      { thread_ids: threadIds, strategy = "delete" }: ThreadPrune,
    ): Promise<number> {
      const visibility = await authorize(caller, "threads", "delete", { thread_ids: threadIds });
      if (strategy === "delete") return (await removeIdle(visibility, threadIds)).length;
      let pruned = 0;
      // One transaction each: what a prune costs depends on the thread.
      for (const threadId of new Set(threadIds)) {
        await database.transaction(async (transaction) => {
          if (!(await lockForPrune(transaction, visibility, threadId))) return;
          await checkpoints.keepLatest(threadId, transaction);
          pruned += 1;
        });
      }
      return pruned;
    },

    /** Bytes that a thread occupies. */
    async storage(caller: Caller, threadId: string): Promise<ThreadStorage> {
      await states.standing(await authorize(caller, "threads", "read", { thread_id: threadId }), threadId);
      return await checkpoints.storage(threadId);
    },
  };
};

export type UpkeepService = ReturnType<typeof createUpkeepService>;
