import type { Queryable } from "../../platform/database/database.ts";
import { ElementCache } from "./lists/element-cache.ts";
import { CheckpointReader } from "./read/checkpoint-reader.ts";
import { findLatestOfRun, findPlaceOfRun } from "./read/row-statements.ts";
import { createStateReads } from "./read/state-reads.ts";
import { KnownShapes } from "./rows/known-shapes.ts";
import { threadKey } from "./rows/thread-key.ts";
import type { SaverParts } from "./saver/difference-saver.ts";
import { FencedSaver } from "./saver/fenced-saver.ts";
import { UnfencedSaver } from "./saver/unfenced-saver.ts";
import { StoredSteps } from "./write/stored-steps.ts";
import type { CheckpointStorage, CheckpointStorageOptions } from "./types.ts";
import { copyThread } from "./upkeep/copying.ts";
import { deleteRun, deleteThread, deleteUnended } from "./upkeep/deleting.ts";
import { mergeHeadMetadata } from "./upkeep/head-metadata.ts";
import { keepLatest } from "./upkeep/pruning.ts";
import { measureThread } from "./upkeep/thread-size.ts";

export type * from "./types.ts";

const CACHE_BYTES = 64 * 1024 * 1024;

/** Holds no connection, so it needs no `close`. */
export const createCheckpointStorage = (options: CheckpointStorageOptions): CheckpointStorage => {
  const { database, cacheBytes = CACHE_BYTES, logger } = options;
  const cache = new ElementCache(cacheBytes);
  const shapes = new KnownShapes();
  // A crash loses asynchronous commits, and other writers reuse their positions, so the cache would be wrong.
  database.onConnectionLost(() => {
    cache.forgetAll();
    shapes.invalidateStored();
  });
  const parts: SaverParts = {
    database,
    cache,
    shapes,
    valueCharactersAtMost: options.valueCharactersAtMost,
    onWritten: options.onWritten,
    reader: new CheckpointReader(database, cache, shapes),
  };

  const within = <Result>(
    queryable: Queryable | undefined,
    work: (queryable: Queryable) => Promise<Result>,
  ): Promise<Result> => (queryable === undefined ? database.transaction(work) : work(queryable));

  return {
    saver: new UnfencedSaver(parts),
    saverForRead(filter) {
      const saver = new UnfencedSaver(parts);
      saver.filter = filter;
      return saver;
    },
    saverForAttempt(options) {
      const { threadId, runId, attempt, durability = "async", metadata = {}, searchableMetadata } = options;
      const { threadIsEmpty = false, beforeNextStep, beforeWrite, observesSteps = false } = options;
      return new FencedSaver(
        parts,
        { metadata, searchable: searchableMetadata, runId, waits: durability === "sync" },
        { kind: "attempt", runId, attempt },
        threadKey(threadId),
        threadIsEmpty ? threadKey(threadId) : undefined,
        { beforeNextStep, beforeWrite },
        observesSteps ? new StoredSteps() : undefined,
      );
    },
    saverForIdleThread: (threadVersion) =>
      new FencedSaver(
        parts,
        { metadata: {}, runId: null, waits: false },
        threadVersion === undefined ? { kind: "idle-thread" } : { kind: "unchanged-thread", threadVersion },
      ),
    saverForImport: () => new FencedSaver(parts, { metadata: {}, runId: null, waits: false }, undefined),

    ...createStateReads(database, parts.reader, logger),
    latestOfRun: (threadId, runId) => findLatestOfRun(database, threadKey(threadId), runId),
    placeOfRun: (threadId, runId) => findPlaceOfRun(database, threadKey(threadId), runId),

    takeBackAnswers: ({ threadId, ...attempt }) =>
      deleteUnended(database, { threadId: threadKey(threadId), ...attempt }),
    deleteRun: (threadId, runId, queryable) =>
      within(queryable, (transaction) => deleteRun(transaction, threadKey(threadId), runId)),
    async deleteThread(threadId, queryable = database) {
      await deleteThread(queryable, threadKey(threadId));
      cache.forget(threadKey(threadId));
    },
    copyThread: (fromThreadId, toThreadId, queryable = database) =>
      copyThread(queryable, threadKey(fromThreadId), threadKey(toThreadId)),
    keepLatest: (threadId, queryable) =>
      within(queryable, (transaction) => keepLatest(transaction, threadKey(threadId), shapes)),
    mergeHeadMetadata: (threadId, metadata) =>
      database.transaction((transaction) => mergeHeadMetadata(transaction, threadKey(threadId), metadata)),
    storage: (threadId) => measureThread(database, threadKey(threadId), threadId, shapes),
  };
};
