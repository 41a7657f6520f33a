import type { WhenLarge } from "../lib/large-answers.ts";
import type { ThreadTtl } from "../project/thread-expiry.ts";
import type { CheckpointStorage, ThreadStorage } from "../checkpoints/types.ts";
import type { Database } from "../database/database.ts";
import { metadataTooLarge } from "../database/merging.ts";
import type { Graphs } from "../graphs/graphs.ts";
import type { RunEnd } from "../queue/attempts.ts";
import type { RunEnds } from "../queue/ending.ts";
import { conflict, graphNotFound, invalid, ThreadChangedError, threadNotFound } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json.ts";
import type { Logger } from "../lib/logger.ts";
import { createThreadConfigurations } from "./state/configuration.ts";
import { createThreadPages, type PageAsking, type ThreadPage } from "./search/pages.ts";
import { createReadPacer } from "./state/read-pace.ts";
import { writeRecord, type ThreadRecordRow } from "./record.ts";
import { createThreadRepository, type ThreadStanding } from "./repository.ts";
import { createThreadSearcher, type Candidate } from "./search/search.ts";
import type {
  StateUpdate,
  ThreadCreate,
  ThreadFilter,
  ThreadPatch,
  ThreadPrune,
  ThreadSearch,
  UpdatedState,
} from "./schemas.ts";
import { createStateReader, type HistoryOptions, type StateOptions } from "./state/state.ts";
import { createTurns } from "./turns.ts";
import { createStateWriter, outcomeOf, updatedState } from "./state/update.ts";

export interface ThreadServiceOptions {
  database: Database;
  checkpoints: CheckpointStorage;
  ends: Pick<RunEnds, "deleteThreads">;
  graphs: Graphs;
  logger: Logger;
  /** For threads that are created without a time to live; undefined: those stay for ever. */
  defaultTtl?: ThreadTtl | undefined;
  /** Told the ids of threads that are gone, whose runs' work can stop, and of the runs that ended so. */
  onThreadsDeleted?: (threadIds: readonly string[], ended: readonly RunEnd[]) => void;
}

/** An update of a state is made anew if the thread was changed meanwhile: by a prune, or a run that came and went. */
const UPDATE_TRIES_AT_MOST = 10;

/**
 * Records and states of threads. What goes out is JSON text, since it comes out of the database as text.
 *
 * Every method that takes a thread's id throws `threadNotFound` if there is none.
 */
export const createThreadService = (options: ThreadServiceOptions) => {
  const { database, checkpoints, ends, graphs, defaultTtl, onThreadsDeleted, logger } = options;
  const repository = createThreadRepository(database);
  const configurations = createThreadConfigurations(database);
  const states = createStateReader({ checkpoints, graphs, configurations, logger });
  const writer = createStateWriter({ checkpoints, graphs, configurations });
  const turns = createTurns();
  const pacer = createReadPacer();

  const toThread = ({ thread_id, graph_id }: Candidate) => ({
    threadId: thread_id,
    graphId: graph_id,
  });

  const pages = createThreadPages({
    searcher: createThreadSearcher(database),
    pacer,
    valuesOf: (rows, options) =>
      states.headValues(rows.filter((row) => !row.untouched).map(toThread), options),
  });

  const valuesOf = async (row: ThreadRecordRow, whenLarge?: WhenLarge): Promise<string | null> =>
    row.untouched ? null : await states.values(toThread(row), whenLarge);

  const find = async (threadId: string): Promise<ThreadRecordRow> => {
    const row = await repository.find(threadId);
    if (row === undefined) throw threadNotFound(threadId);
    return row;
  };

  const standingOf = async (threadId: string): Promise<ThreadStanding> => {
    const standing = await repository.standing(threadId);
    if (standing === undefined) throw threadNotFound(threadId);
    return standing;
  };

  /** With their runs, even those in progress. */
  const remove = async (threadIds: readonly string[]): Promise<string[]> => {
    const { gone, ended } = await database.transaction(async (transaction) => {
      const locked = await repository.lockForDeletion(transaction, threadIds);
      return { gone: locked, ended: await ends.deleteThreads(transaction, locked) };
    });
    if (gone.length > 0) onThreadsDeleted?.(gone, ended);
    return gone;
  };

  /** Those without a run in progress. The row first, then what it leaves behind. */
  const removeIdle = async (threadIds: readonly string[]): Promise<string[]> => {
    const deleted = await database.transaction(async (transaction) => {
      const gone = await repository.deleteIdle(transaction, threadIds);
      for (const threadId of gone) await checkpoints.deleteThread(threadId, transaction);
      return gone;
    });
    if (deleted.length > 0) onThreadsDeleted?.(deleted, []);
    return deleted;
  };

  const recordOutcome = async (threadId: string, graphId: string): Promise<void> =>
    await repository.recordOutcome(threadId, outcomeOf(await states.head({ threadId, graphId })));

  /** A thread whose first states are given. It is there only if the graph takes them all. */
  const createWithSupersteps = async (
    { thread_id: threadId }: ThreadRecordRow,
    graphId: string,
    supersteps: NonNullable<ThreadCreate["supersteps"]>,
  ): Promise<ThreadRecordRow> => {
    try {
      const { version } = await standingOf(threadId);
      await writer.replay({ threadId, graphId, version }, supersteps);
      await recordOutcome(threadId, graphId);
    } catch (error) {
      await remove([threadId]);
      throw error;
    }
    return await find(threadId);
  };

  const tryToUpdate = async (threadId: string, update: StateUpdate): Promise<UpdatedState> => {
    const standing = await standingOf(threadId);
    repository.assertIdle(threadId, standing);
    const { graphId, version } = standing;
    if (graphId === null) {
      throw invalid(
        `Thread '${threadId}' has no graph yet: run an assistant on it, or give it 'metadata.graph_id'.`,
      );
    }
    const updated = await writer.update({ threadId, graphId, version }, update);
    await recordOutcome(threadId, graphId);
    return updated;
  };

  return {
    /** Of whatever is made of what a thread holds, beside the searches that are paced here. */
    pacer,

    // Below, `whenLarge` is awaited before a large state is read for the answer.

    /**
     * Creates a thread, with a new id if none is given, and answers its record.
     * Throws `conflict` if the id is taken, unless `if_exists` is `do_nothing`, which answers that thread.
     */
    async create(thread: ThreadCreate, whenLarge?: WhenLarge): Promise<string> {
      const { supersteps = [], metadata = {} } = thread;
      if (supersteps.length > 0) {
        const graphId = metadata.graph_id;
        if (typeof graphId !== "string") {
          throw invalid("'supersteps': 'metadata.graph_id' must name the graph whose states they are.");
        }
        if (!graphs.has(graphId)) throw graphNotFound(graphId);
      }
      const row = await repository.insert({
        threadId: thread.thread_id,
        metadata: JSON.stringify(metadata),
        ttl: thread.ttl ?? defaultTtl,
      });
      if (row !== undefined) {
        if (supersteps.length === 0) return writeRecord(row, { values: null });
        const replayed = await createWithSupersteps(row, row.graph_id ?? "", supersteps);
        return writeRecord(replayed, { values: await valuesOf(replayed, whenLarge) });
      }
      const threadId = thread.thread_id ?? "";
      if (thread.if_exists !== "do_nothing") throw conflict(`Thread '${threadId}' already exists.`);
      const existing = await find(threadId);
      return writeRecord(existing, { values: await valuesOf(existing, whenLarge) });
    },

    async read(
      threadId: string,
      { includeTtl = false, whenLarge }: { includeTtl?: boolean; whenLarge?: WhenLarge } = {},
    ): Promise<string> {
      const row = await find(threadId);
      return writeRecord(row, { values: await valuesOf(row, whenLarge), includeTtl });
    },

    /**
     * Merges metadata; the time to live, a new one or the one that it has, counts from now. Throws `invalid` for metadata
     * that would grow too large.
     */
    async patch(
      threadId: string,
      { metadata = {}, ttl }: ThreadPatch,
      whenLarge?: WhenLarge,
    ): Promise<string> {
      const text = JSON.stringify(metadata);
      let row = await repository.patch(threadId, text, ttl);
      if (row === undefined) {
        await find(threadId);
        // It may have been deleted and made again while the first try waited for it, which then saw neither.
        row = await repository.patch(threadId, text, ttl);
        if (row === undefined) throw metadataTooLarge();
      }
      return writeRecord(row, { values: await valuesOf(row, whenLarge), includeTtl: ttl !== undefined });
    },

    /** Deletes a thread with its runs, even one in progress: its attempt can write nothing any more. */
    async delete(threadId: string): Promise<void> {
      if ((await remove([threadId])).length === 0) throw threadNotFound(threadId);
    },

    /** Deletes threads; ids that are gone already are no error. Answers those that were there. */
    async deleteMany(threadIds: readonly string[]): Promise<string[]> {
      return await remove(threadIds);
    },

    /** How many threads were deleted, or reduced to their latest state. Those with a run in progress stay. */
    async prune({ thread_ids: threadIds, strategy = "delete" }: ThreadPrune): Promise<number> {
      if (strategy === "delete") return (await removeIdle(threadIds)).length;
      let pruned = 0;
      // One transaction each: what a prune costs depends on the thread.
      for (const threadId of new Set(threadIds)) {
        await database.transaction(async (transaction) => {
          if (!(await repository.lockForPrune(transaction, threadId))) return;
          await checkpoints.keepLatest(threadId, transaction);
          pruned += 1;
        });
      }
      return pruned;
    },

    search: (search: ThreadSearch, asking?: PageAsking): Promise<ThreadPage> => pages.search(search, asking),

    count: (filter: ThreadFilter, asking?: PageAsking): Promise<number> => pages.count(filter, asking),

    /** A new thread with the record, the states and the history of another. */
    async copy(threadId: string, whenLarge?: WhenLarge): Promise<string> {
      const copy = await database.transaction(async (transaction) => {
        const copied = await repository.insertCopy(threadId, transaction);
        if (copied === undefined) throw threadNotFound(threadId);
        await checkpoints.copyThread(threadId, copied.thread_id, transaction);
        return copied;
      });
      if (copy.was_busy && copy.graph_id !== null) await recordOutcome(copy.thread_id, copy.graph_id);
      const row = copy.was_busy ? await find(copy.thread_id) : copy;
      return writeRecord(row, { values: await valuesOf(row, whenLarge) });
    },

    async storage(threadId: string): Promise<ThreadStorage> {
      await standingOf(threadId);
      return await checkpoints.storage(threadId);
    },

    async state(threadId: string, stateOptions: StateOptions, whenLarge?: WhenLarge): Promise<string> {
      const { graphId } = await standingOf(threadId);
      return await states.read({ threadId, graphId }, stateOptions, whenLarge);
    },

    /** JSON texts of states, the newest first, each made when it is asked for. */
    async *history(
      threadId: string,
      historyOptions: HistoryOptions,
      whenLarge?: WhenLarge,
    ): AsyncGenerator<string, void, undefined> {
      const { graphId } = await standingOf(threadId);
      yield* states.history({ threadId, graphId }, historyOptions, whenLarge);
    },

    /** JSON text of the values of the newest checkpoint; null if the thread never ran. */
    async headValues(threadId: string, whenLarge?: WhenLarge): Promise<string | null> {
      return await valuesOf(await find(threadId), whenLarge);
    },

    /**
     * Writes a new checkpoint, as a node would have. Throws `threadBusy` while a run is pending or running,
     * `invalid` for a thread without a graph and for what the graph refuses, `ThreadChangedError` if others keep
     * changing the thread.
     */
    async updateState(threadId: string, update: StateUpdate): Promise<UpdatedState> {
      for (let tries = 1; ; tries += 1) {
        try {
          // Those that were in each other's way take turns from then on.
          return await (tries === 1
            ? tryToUpdate(threadId, update)
            : turns.take(threadId, () => tryToUpdate(threadId, update)));
        } catch (error) {
          if (!(error instanceof ThreadChangedError) || tries === UPDATE_TRIES_AT_MOST) throw error;
        }
      }
    },

    /** Merges metadata into those of the newest checkpoint. Throws `invalid` for a thread that never ran. */
    async patchState(threadId: string, metadata: JsonObject): Promise<UpdatedState> {
      await standingOf(threadId);
      const checkpointId = await checkpoints.mergeHeadMetadata(threadId, metadata);
      if (checkpointId === undefined) throw invalid(`Thread '${threadId}' has no state yet.`);
      return updatedState({ threadId, namespace: "", checkpointId, map: null });
    },
  };
};

export type ThreadService = ReturnType<typeof createThreadService>;
