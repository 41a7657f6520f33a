import type { Authorize } from "../../access/authorize.ts";
import { THE_SERVER, type Caller } from "../../access/caller.ts";
import type { Visibility } from "../../access/visibility.ts";
import type { RunEnd } from "../../engine/queue/attempts.ts";
import type { RunEnds } from "../../engine/queue/ending.ts";
import type { Queue } from "../../engine/queue/queue.ts";
import type { Database, Queryable } from "../../platform/database/database.ts";
import { logFailure } from "../../platform/database/outages.ts";
import { statement } from "../../platform/database/statement.ts";
import { threadNotFound } from "../../platform/domain/errors.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { startPeriodic } from "../../platform/lib/periodic.ts";
import type { CheckpointStorage, ThreadStorage } from "../../state/checkpoints/types.ts";
import type { ThreadRepository } from "./repository.ts";
import type { ThreadPrune } from "./schemas.ts";

type ThreadRow = { thread_id: string };
type Checkpoints = Pick<CheckpointStorage, "deleteThread" | "keepLatest">;

const SOME_THREADS = { threadIds: "uuid[]", visible: "fragment" } as const;

/** The order prevents deadlocks between two deletions. */
const LOCK_FOR_DELETION = statement(
  SOME_THREADS,
  (sql) => `select thread_id from threadloom.threads
  where thread_id = any(${sql.threadIds}) and ${sql.visible} order by thread_id for update`,
);

const DELETE_IDLE = statement(
  SOME_THREADS,
  (sql) => `
  with idle as (
    select thread_id from threadloom.threads
     where thread_id = any(${sql.threadIds}) and unfinished_runs = 0 and ${sql.visible} order by thread_id for update)
  delete from threadloom.threads using idle where threads.thread_id = idle.thread_id
  returning threads.thread_id`,
);

/**
 * Clears `expires_at` until the state changes; keeps `updated_at` for users' changes. New runs and updates wait; an update
 * that read before finds a new version.
 */
const LOCK_FOR_PRUNE = statement(
  { threadId: "uuid", visible: "fragment" },
  (sql) => `update threadloom.threads set version = version + 1,
    expires_at = case ttl_strategy when 'keep_latest' then null else expires_at end
  where thread_id = ${sql.threadId} and unfinished_runs = 0 and ${sql.visible} returning thread_id`,
);

/** Threads with an unfinished run stay. */
export const deleteIdle = async (
  transaction: Queryable,
  checkpoints: Checkpoints,
  visibility: Visibility<"threads">,
  threadIds: readonly string[],
): Promise<string[]> => {
  const visible = visibility.on("metadata");
  const rows = await DELETE_IDLE.query<ThreadRow>(transaction, { threadIds, visible });
  for (const { thread_id } of rows) await checkpoints.deleteThread(thread_id, transaction);
  return rows.map(({ thread_id }) => thread_id);
};

/** False if the thread is missing or has an unfinished run. */
export const pruneIdle = async (
  transaction: Queryable,
  checkpoints: Checkpoints,
  visibility: Visibility<"threads">,
  threadId: string,
): Promise<boolean> => {
  const visible = visibility.on("metadata");
  const locked = await LOCK_FOR_PRUNE.query<ThreadRow>(transaction, { threadId, visible });
  if (locked.length > 0) await checkpoints.keepLatest(threadId, transaction);
  return locked.length > 0;
};

export interface UpkeepServiceOptions {
  database: Database;
  authorize: Authorize;
  repository: Pick<ThreadRepository, "standing">;
  checkpoints: Checkpoints & Pick<CheckpointStorage, "storage">;
  ends: Pick<RunEnds, "deleteThreads">;
  onThreadsDeleted?: ((threadIds: readonly string[], ended: readonly RunEnd[]) => void) | undefined;
}

/** retention.ts removes expired threads. */
export const createUpkeepService = (options: UpkeepServiceOptions) => {
  const { database, authorize, repository, checkpoints, ends, onThreadsDeleted } = options;

  const remove = async (
    visibility: Visibility<"threads">,
    threadIds: readonly string[],
  ): Promise<string[]> => {
    const visible = visibility.on("metadata");
    const { gone, ended } = await database.transaction(async (transaction) => {
      const rows = await LOCK_FOR_DELETION.query<ThreadRow>(transaction, { threadIds, visible });
      const locked = rows.map(({ thread_id }) => thread_id);
      return { gone: locked, ended: await ends.deleteThreads(transaction, locked) };
    });
    if (gone.length > 0) onThreadsDeleted?.(gone, ended);
    return gone;
  };

  return {
    /** Ends the thread's runs. A running attempt can write nothing more. */
    async delete(caller: Caller, threadId: string): Promise<void> {
      const visibility = await authorize(caller, "threads", "delete", { thread_id: threadId });
      if ((await remove(visibility, [threadId])).length === 0) throw threadNotFound(threadId);
    },

    async deleteMany(caller: Caller, threadIds: readonly string[]): Promise<string[]> {
      return await remove(await authorize(caller, "threads", "delete", { thread_ids: threadIds }), threadIds);
    },

    /** The creator may have no right to delete the thread. */
    async takeBack(threadId: string): Promise<void> {
      await remove(await authorize(THE_SERVER, "threads", "delete", { thread_id: threadId }), [threadId]);
    },

    /** Returns how many threads changed. Threads with an unfinished run stay. */
    async prune(
      caller: Caller,
      { thread_ids: threadIds, strategy = "delete" }: ThreadPrune,
    ): Promise<number> {
      const visibility = await authorize(caller, "threads", "delete", { thread_ids: threadIds });
      if (strategy === "delete") {
        const deleted = await database.transaction((transaction) =>
          deleteIdle(transaction, checkpoints, visibility, threadIds),
        );
        if (deleted.length > 0) onThreadsDeleted?.(deleted, []);
        return deleted.length;
      }
      let pruned = 0;
      // The cost of a prune depends on the thread.
      for (const threadId of new Set(threadIds)) {
        const isPruned = await database.transaction((transaction) =>
          pruneIdle(transaction, checkpoints, visibility, threadId),
        );
        if (isPruned) pruned += 1;
      }
      return pruned;
    },

    async storage(caller: Caller, threadId: string): Promise<ThreadStorage> {
      const visibility = await authorize(caller, "threads", "read", { thread_id: threadId });
      await repository.standing(visibility, threadId);
      return await checkpoints.storage(threadId);
    },
  };
};

export type UpkeepService = ReturnType<typeof createUpkeepService>;

/** Readers on other processes may still be reading the end. */
const LINGER_SECONDS = 60;

/** Removes what threadless runs leave. */
export const startThreadlessSweep = (
  queue: Pick<Queue, "listEndedThreadless">,
  upkeep: Pick<UpkeepService, "prune">,
  everySeconds: number,
  logger: Logger,
): { close(): Promise<void> } =>
  startPeriodic({
    everyMs: everySeconds * 1_000,
    async work() {
      const ended = await queue.listEndedThreadless(LINGER_SECONDS);
      if (ended.length > 0) await upkeep.prune(THE_SERVER, { thread_ids: ended, strategy: "delete" });
    },
    onError: logFailure(logger, "ended threadless runs could not be removed"),
  });
