import type { Visibility } from "../../../access/visibility.ts";
import type { Database, Queryable } from "../../../platform/database/database.ts";
import type { RunRow } from "../../../platform/database/tables.ts";
import { assistantNotFound, invalid, threadNotFound, threadTaken } from "../../../platform/domain/errors.ts";
import type { ThreadTtl } from "../../../graphs/project/thread-expiry.ts";
import { createWithThread } from "../../../engine/queue/sql/create-with-thread.ts";
import { lockThreads } from "../../../engine/queue/sql/lock-threads.ts";
import { lockUnfinishedOf } from "../../../engine/queue/sql/lock-unfinished.ts";
import type { Announcements } from "../announcements.ts";
import type { RunRepository } from "../repository.ts";
import {
  NOTHING_REPLACED,
  type BehindOthers,
  type BehindOthersStore,
  type Replaced,
} from "./behind-others.ts";
import type { PendingLimits } from "./pending-limits.ts";
import type { GrantedRequest } from "./requests.ts";

export interface BatchParts {
  database: Database;
  repository: Pick<RunRepository, "threadIsHidden" | "threadExists" | "threadsSeen">;
  announcements: Announcements;
  behindOthers: BehindOthersStore;
  limits: PendingLimits;
  /** For locks. */
  everyThread: Visibility<"threads">;
  /** Of threads that a run creates and keeps. */
  threadTtl: ThreadTtl | undefined;
}

/** Characters that the runs copy from assistants and threads. */
const TAKEN_OVER_AT_MOST = 16_000_000;

const takenOver = ({ config, context, metadata }: RunRow): number =>
  JSON.stringify([config, context, metadata]).length;

/** Another caller has created one of the batch's threads. */
export class ThreadAppeared extends Error {}

const batchTooLarge = () =>
  invalid(
    `The runs of this batch would hold more than ${TAKEN_OVER_AT_MOST} characters of 'config', 'context' and 'metadata' ` +
      "in all, with what they take over from their assistants and threads: send fewer at a time.",
  );

/** All or none. */
export const createBatches = (parts: BatchParts) => {
  const { database, repository, announcements, behindOthers, limits, everyThread, threadTtl } = parts;

  /**
   * Locking hidden threads would delay their runs and reveal that they exist. One statement per filter; nearly always
   * there is one.
   */
  const seenThreads = async (transaction: Queryable, named: readonly GrantedRequest[]): Promise<string[]> => {
    const byFilter = new Map<string, { filter: Visibility<"threads">; threadIds: string[] }>();
    for (const { rights, run } of named) {
      const text = JSON.stringify([rights.threads.on("metadata")]);
      const one = byFilter.get(text) ?? { filter: rights.threads, threadIds: [] };
      one.threadIds.push(run.threadId);
      byFilter.set(text, one);
    }
    const seen: string[] = [];
    for (const { filter, threadIds } of byFilter.values())
      seen.push(...(await repository.threadsSeen(filter, threadIds, transaction)));
    return seen;
  };

  /** `threads`: the locked existing threads, and those created for a run. */
  const storeOne = async (
    transaction: Queryable,
    { rights, run, placement }: GrantedRequest,
    threads: Set<string>,
  ): Promise<BehindOthers> => {
    if (threads.has(run.threadId)) {
      const isHidden = await repository.threadIsHidden(rights.threads, run.threadId, transaction);
      if (!isHidden) return await behindOthers.store(transaction, rights, run);
    }
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

  /**
   * After `ThreadAppeared` nothing is stored and the caller can retry. Throws `invalid` if the runs are too large
   * together, `tooMany` if too many would be pending.
   */
  const storeAll = async (requested: readonly GrantedRequest[]): Promise<RunRow[]> => {
    const replaced: Replaced[] = [];
    const rows = await database.transaction(async (transaction) => {
      const named = requested.filter(({ placement }) => placement.kind === "thread");
      const threads = await lockThreads(
        transaction,
        // One order, whatever each creator may see.
        everyThread,
        await seenThreads(transaction, named),
      );
      const replacing = named.filter(
        ({ run }) => run.multitaskStrategy !== "enqueue" && threads.has(run.threadId),
      );
      await lockUnfinishedOf(
        transaction,
        replacing.map(({ run }) => run.threadId),
      );
      const [first] = requested;
      if (first !== undefined) await limits.assertRoomOfCaller(transaction, first.run, requested.length);
      const created = new Map<string, RunRow>();
      let characters = 0;
      // Another batch may be creating the same threads.
      for (const one of requested.toSorted((a, b) => (a.run.threadId < b.run.threadId ? -1 : 1))) {
        const stored = await storeOne(transaction, one, threads);
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

  return storeAll;
};
