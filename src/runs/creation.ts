import type { Visibility } from "../access/visibility.ts";
import type { Database, Queryable } from "../database/database.ts";
import type { ClaimedRunRow, RunRow } from "../database/tables.ts";
import { isContention, isPassing, mayHaveBeenCommitted, retryPassing } from "../database/passing-faults.ts";
import type { Execution } from "../engine/attempt/execution.ts";
import type { Worker } from "../engine/worker/worker.ts";
import {
  assistantNotFound,
  checkpointNotFound,
  conflict,
  invalid,
  sqlState,
  threadNotFound,
  UNIQUE_VIOLATION,
} from "../domain/errors.ts";
import { assertRecursionLimit } from "../domain/recursion-limit.ts";
import type { Announcements } from "./announcements.ts";
import { createBehindOthers, NOTHING_REPLACED, type BehindOthers, type Replaced } from "./behind-others.ts";
import type { RunEnds } from "../queue/ending.ts";
import { createOnIdleThread } from "../queue/sql/create-on-idle-thread.ts";
import { createWithThread } from "../queue/sql/create-with-thread.ts";
import type { CreationRights, NewRun } from "../queue/sql/create.ts";
import { lockThreads } from "../queue/sql/lock-threads.ts";
import { lockUnfinishedOf } from "../queue/sql/lock-unfinished.ts";
import type { ThreadTtl } from "../project/thread-expiry.ts";
import type { RunRepository } from "./repository.ts";
import type { RequestedRun } from "./requests.ts";
import type { CreatedRun } from "./results.ts";

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
  ends: Pick<RunEnds, "replaceWaiting">;
  checkpoints: {
    /** Throws `checkpointNotFound`. */
    assertExists(threadId: string, checkpointNamespace: string, checkpointId: string): Promise<void>;
  };
}

/** How long a caller waits to hear whether its run was stored, when the database went away meanwhile. */
const UNCERTAIN_SECONDS = 10;

/** Characters that the runs of a batch may take over together from their assistants and threads: each has a copy. */
const TAKEN_OVER_AT_MOST = 16_000_000;

const takenOver = ({ config, context, metadata }: RunRow): number =>
  JSON.stringify([config, context, metadata]).length;

/** Each time another caller has made a thread that a batch was about to make. */
const APPEARANCES_AT_MOST = 10;
class ThreadAppeared extends Error {}

/** With the words of a thread that is created twice: whose it is, is not told. */
const threadTaken = (threadId: string) => conflict(`Thread '${threadId}' already exists.`);

const batchTooLarge = () =>
  invalid(
    `The runs of this batch would hold more than ${TAKEN_OVER_AT_MOST} characters of 'config', 'context' and 'metadata' ` +
      "in all, with what they take over from their assistants and threads: send fewer at a time.",
  );

/**
 * A connection that dies between commit and answer leaves open whether something is stored. Its caller would be told
 * 503 and ask again, and it would be there twice; so it is looked for until the database answers, and stored then if
 * it is not there. `store` is told whether it is called again. A database that certainly took nothing is a 503 at once,
 * unless it only was too busy with others.
 */
const storeOnce = async <Stored>(
  find: () => Promise<Stored | undefined>,
  store: (isRetry: boolean) => Promise<Stored>,
): Promise<Stored> =>
  await retryPassing(async (isRetry) => (isRetry ? await find() : undefined) ?? (await store(isRetry)), {
    forMs: UNCERTAIN_SECONDS * 1_000,
    after(error, isRetry) {
      // Stored by the try before, at the same moment: it is found by the next.
      const isThere = isRetry && sqlState(error) === UNIQUE_VIOLATION;
      return isThere || isContention(error) || mayHaveBeenCommitted(error) || (isRetry && isPassing(error));
    },
  });

/** Stores runs under the per-thread rule and starts them, here at once if there is a free slot. */
export const createRunCreation = (parts: RunCreationParts) => {
  const { database, repository, worker, announcements, processId, recursionLimitMax, checkpoints } = parts;
  const { everyThread, threadTtl } = parts;

  const behindOthers = createBehindOthers(parts.ends);

  /** Undefined if the thread became idle or was made meanwhile, so that the fast way is open again. */
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
      // Under the thread's lock it is certain whether the try before was committed.
      const stored = isRetry ? await repository.find(everyThread, run, transaction) : undefined;
      if (stored !== undefined) return stored;
      const created = await behindOthers.store(transaction, rights, run);
      // Deleted at this very moment. What was ended for the new run must not be without it.
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
    for (;;) {
      const reservation = run.afterSeconds > 0 ? undefined : worker.reserve();
      let row: ClaimedRunRow | undefined;
      let execution: Execution | undefined;
      try {
        row =
          placement.kind === "thread"
            ? await createOnIdleThread(database, rights, run, reservation)
            : await createWithThread(database, rights, run, reservation, threadTtl);
        if (row === undefined && placement.kind === "thread" && placement.createIfMissing) {
          row = await createWithThread(database, rights, run, reservation, threadTtl);
        }
      } finally {
        if (reservation !== undefined) {
          if (row?.status === "running") execution = worker.start(row);
          else worker.cancelReservation();
        }
      }
      if (row === undefined) {
        if (!(await repository.assistantExists(rights.assistants, run.assistantId)))
          throw assistantNotFound(assistant);
        row = await placeBehindOthers(
          rights,
          run,
          placement.kind === "thread" && placement.createIfMissing,
          isRetry,
        );
        if (row === undefined) continue;
      }
      if (row.status === "pending") announcements.available(row, run.afterSeconds);
      return { row, execution };
    }
  };

  /** `threads`: those that are there, locked; one that is made for a run is added. */
  const storeOne = async (
    transaction: Queryable,
    rights: CreationRights,
    { run, placement }: RequestedRun,
    threads: Set<string>,
  ): Promise<BehindOthers> => {
    if (threads.has(run.threadId)) return await behindOthers.store(transaction, rights, run);
    if (placement.kind === "thread" && !placement.createIfMissing) throw threadNotFound(run.threadId);
    const row = await createWithThread(transaction, rights, run, undefined, threadTtl);
    if (row !== undefined) threads.add(run.threadId);
    else if (await repository.threadIsHidden(rights.threads, run.threadId, transaction)) {
      throw threadTaken(run.threadId);
    } else if (await repository.threadExists(rights.threads, run.threadId, transaction)) {
      throw new ThreadAppeared();
    }
    return { row, replaced: NOTHING_REPLACED };
  };

  /** Throws `ThreadAppeared`: then nothing is stored, and it can be tried again. Throws `invalid` for too much in all. */
  const storeAll = async (rights: CreationRights, requested: readonly RequestedRun[]): Promise<RunRow[]> => {
    const replaced: Replaced[] = [];
    const rows = await database.transaction(async (transaction) => {
      const named = requested.filter(({ placement }) => placement.kind === "thread");
      const threads = await lockThreads(
        transaction,
        rights.threads,
        named.map(({ run }) => run.threadId),
      );
      const replacing = named.filter(({ run }) => run.multitaskStrategy !== "enqueue");
      await lockUnfinishedOf(
        transaction,
        replacing.map(({ run }) => run.threadId),
      );
      const created = new Map<string, RunRow>();
      let characters = 0;
      // In the order of the threads, since another batch may be about to make the same ones.
      for (const one of requested.toSorted((a, b) => (a.run.threadId < b.run.threadId ? -1 : 1))) {
        const stored = await storeOne(transaction, rights, one, threads);
        if (stored.row === undefined) throw assistantNotFound(one.assistant);
        characters += takenOver(stored.row);
        if (characters > TAKEN_OVER_AT_MOST) throw batchTooLarge();
        created.set(stored.row.run_id, stored.row);
        replaced.push(stored.replaced);
      }
      return requested.flatMap(({ run }) => created.get(run.runId) ?? []);
    });
    for (const ended of replaced) behindOthers.announce(announcements, ended);
    return rows;
  };

  const assertStart = async (rights: CreationRights, { run, checkpointId }: RequestedRun): Promise<void> => {
    assertRecursionLimit(run.config, recursionLimitMax);
    if (checkpointId === undefined) return;
    // Checkpoints know no caller, and must not tell what a hidden thread has.
    if (await repository.threadIsHidden(rights.threads, run.threadId)) throw checkpointNotFound(checkpointId);
    await checkpoints.assertExists(run.threadId, "", checkpointId);
  };

  return {
    async create(rights: CreationRights, requested: RequestedRun): Promise<CreatedRun> {
      await assertStart(rights, requested);
      const find = async (): Promise<CreatedRun | undefined> => {
        const row = await repository.find(everyThread, requested.run);
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
    async createAll(rights: CreationRights, requested: readonly RequestedRun[]): Promise<RunRow[]> {
      for (const one of requested) await assertStart(rights, one);
      const runIds = requested.map(({ run }) => run.runId);
      const find = async (): Promise<RunRow[] | undefined> => {
        const stored = await repository.findAll(everyThread, runIds);
        return stored.length === 0 ? undefined : stored;
      };
      const rows = await storeOnce(find, async () => {
        for (let tries = 1; ; tries += 1) {
          try {
            return await storeAll(rights, requested);
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
