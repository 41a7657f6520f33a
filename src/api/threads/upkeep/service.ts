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
  onThreadsDeleted?: ((threadIds: readonly string[], ended: readonly RunEnd[]) => void) | undefined;
}

/** retention.ts removes expired threads. */
export const createUpkeepService = (options: UpkeepServiceOptions) => {
  const { database, authorize, states, checkpoints, ends, onThreadsDeleted } = options;

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
    /** Ends the thread's runs. A running attempt can write nothing more. */
    async delete(caller: Caller, threadId: string): Promise<void> {
      const visibility = await authorize(caller, "threads", "delete", { thread_id: threadId });
      if ((await remove(visibility, [threadId])).length === 0) throw threadNotFound(threadId);
    },

    async deleteMany(caller: Caller, threadIds: readonly string[]): Promise<string[]> {
      const visibility = await authorize(caller, "threads", "delete", { thread_ids: threadIds });
      return await remove(visibility, threadIds);
    },

    /** The creator may have no right to delete the thread. */
    async takeBack(threadId: string): Promise<void> {
      const visibility = await authorize(THE_SERVER, "threads", "delete", { thread_id: threadId });
      await remove(visibility, [threadId]);
    },

    /** Returns how many threads changed. Threads with an unfinished run stay. */
    async prune(
      caller: Caller,
      { thread_ids: threadIds, strategy = "delete" }: ThreadPrune,
    ): Promise<number> {
      const visibility = await authorize(caller, "threads", "delete", { thread_ids: threadIds });
      if (strategy === "delete") return (await removeIdle(visibility, threadIds)).length;
      let pruned = 0;
      // The cost of a prune depends on the thread.
      for (const threadId of new Set(threadIds)) {
        await database.transaction(async (transaction) => {
          if (!(await lockForPrune(transaction, visibility, threadId))) return;
          await checkpoints.keepLatest(threadId, transaction);
          pruned += 1;
        });
      }
      return pruned;
    },

    async storage(caller: Caller, threadId: string): Promise<ThreadStorage> {
      await states.standing(await authorize(caller, "threads", "read", { thread_id: threadId }), threadId);
      return await checkpoints.storage(threadId);
    },
  };
};

export type UpkeepService = ReturnType<typeof createUpkeepService>;
