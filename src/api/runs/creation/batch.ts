import type { Queryable } from "../../../platform/database/database.ts";
import type { RunRow } from "../../../platform/database/tables.ts";
import { assistantNotFound, invalid, threadNotFound, threadTaken } from "../../../platform/domain/errors.ts";
import { createWithThreads } from "../../../engine/queue/sql/create.ts";
import type { CreationRights } from "../../../engine/queue/sql/create.ts";
import { lockThreads } from "../../../engine/queue/sql/lock-threads.ts";
import { lockUnfinishedOf } from "../../../engine/queue/sql/lock-unfinished.ts";
import { NOTHING_REPLACED, type BehindOthers, type Replaced } from "./behind-others.ts";
import type { PlacingParts } from "./placing.ts";
import type { GrantedRequest } from "./requests.ts";

/** Characters that the runs copy from assistants and threads. */
const TAKEN_OVER_AT_MOST = 16_000_000;

const takenOver = ({ config, context, metadata }: RunRow): number =>
  JSON.stringify([config, context, metadata]).length;

const RUNS_PER_STATEMENT = 32;

/** Begins with one run, so that large runs exceed TAKEN_OVER_AT_MOST in a small statement. */
const growing = function* <One>(all: readonly One[]): Generator<One[]> {
  for (
    let start = 0, size = 1;
    start < all.length;
    start += size, size = Math.min(2 * size, RUNS_PER_STATEMENT)
  )
    yield all.slice(start, start + size);
};

/** Another caller has created one of the batch's threads. */
export class ThreadAppeared extends Error {}

const batchTooLarge = () =>
  invalid(
    `The runs of this batch would hold more than ${TAKEN_OVER_AT_MOST} characters of 'config', 'context' and 'metadata' ` +
      "in all, with the parts inherited from their assistants and threads: send fewer at a time.",
  );

/** One statement per filter; nearly always there is one filter. */
const byFilter = (requested: readonly GrantedRequest[], kind: keyof CreationRights): GrantedRequest[][] => {
  const groups = new Map<string, GrantedRequest[]>();
  for (const one of requested) {
    const filter = JSON.stringify([one.rights[kind].on("metadata")]);
    const group = groups.get(filter);
    if (group === undefined) groups.set(filter, [one]);
    else group.push(one);
  }
  return [...groups.values()];
};

/** Stores all runs or none. */
export const createBatches = (parts: Omit<PlacingParts, "worker">) => {
  const { database, repository, announcements, behindOthers, limits, everyThread, threadTtl } = parts;

  /** Locking hidden threads would delay their runs and reveal that they exist. */
  const seenThreads = async (transaction: Queryable, named: readonly GrantedRequest[]): Promise<string[]> => {
    const seen: string[] = [];
    for (const group of byFilter(named, "threads")) {
      const threadIds = group.map(({ run }) => run.threadId);
      seen.push(...(await repository.threadsSeen(group[0]!.rights.threads, threadIds, transaction)));
    }
    return seen;
  };

  const storeWithThreads = async (
    transaction: Queryable,
    requested: readonly GrantedRequest[],
  ): Promise<RunRow[]> => {
    const rows = await createWithThreads(transaction, {
      rights: requested[0]!.rights,
      runs: requested.map(({ run }) => run),
      ttl: threadTtl,
    });
    const stored = new Set(rows.map((row) => row.run_id));
    const missing = requested.find(({ run }) => !stored.has(run.runId));
    if (missing === undefined) return rows;
    const { rights, run, assistant } = missing;
    if (await repository.threadIsHidden(rights.threads, run.threadId, transaction))
      throw threadTaken(run.threadId);
    if (await repository.threadExists(rights.threads, run.threadId, transaction)) throw new ThreadAppeared();
    throw assistantNotFound(assistant);
  };

  /** `threads`: locked or created so far. */
  const storeNamed = async (
    transaction: Queryable,
    request: GrantedRequest,
    threads: Set<string>,
  ): Promise<BehindOthers> => {
    const { rights, run, placement, assistant } = request;
    if (threads.has(run.threadId)) {
      const isHidden = await repository.threadIsHidden(rights.threads, run.threadId, transaction);
      if (!isHidden) {
        const stored = await behindOthers.store(transaction, rights, run);
        if (stored.row === undefined) throw assistantNotFound(assistant);
        return stored;
      }
    }
    if (placement.kind === "thread" && !placement.createIfMissing) throw threadNotFound(run.threadId);
    const [row] = await storeWithThreads(transaction, [request]);
    threads.add(run.threadId);
    return { row, replaced: NOTHING_REPLACED };
  };

  /**
   * Throws `invalid` if the runs are too large together, `tooMany` if too many would be pending. After `ThreadAppeared`
   * the caller can retry.
   */
  const storeAll = async (requested: readonly GrantedRequest[]): Promise<RunRow[]> => {
    const replaced: Replaced[] = [];
    const rows = await database.transaction(async (transaction) => {
      const named = requested.filter(({ placement }) => placement.kind === "thread");
      const threads = await lockThreads(
        transaction,
        // All batches lock in one order, whatever their creators may see.
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
      const add = (row: RunRow | undefined): void => {
        if (row === undefined) return;
        characters += takenOver(row);
        if (characters > TAKEN_OVER_AT_MOST) throw batchTooLarge();
        created.set(row.run_id, row);
      };
      // Sorted, because another batch may create the same threads.
      for (const one of named.toSorted((a, b) => (a.run.threadId < b.run.threadId ? -1 : 1))) {
        const stored = await storeNamed(transaction, one, threads);
        add(stored.row);
        replaced.push(stored.replaced);
      }
      const threadless = requested.filter(({ placement }) => placement.kind === "threadless");
      for (const group of byFilter(threadless, "assistants"))
        for (const some of growing(group)) (await storeWithThreads(transaction, some)).forEach(add);
      return requested.flatMap(({ run }) => created.get(run.runId) ?? []);
    });
    for (const ended of replaced) behindOthers.announce(announcements, ended);
    return rows;
  };

  return storeAll;
};
