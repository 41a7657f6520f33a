import type { Queryable } from "../../platform/database/database.ts";
import { ContentCache } from "./content-reader.ts";
import { FencedSaver } from "./fenced-saver.ts";
import { mergeHeadMetadata } from "./head-metadata.ts";
import { KnownNames } from "./names.ts";
import { keepLatest } from "./pruning.ts";
import { CheckpointReader } from "./reader.ts";
import { findLatestOfRun, findPlaceOfRun, readThread } from "./rows.ts";
import type { SaverParts } from "./saver.ts";
import { createStateReads } from "./state-reads.ts";
import { StoredSteps } from "./stored-steps.ts";
import { threadKey } from "./thread-key.ts";
import { measureThread } from "./thread-size.ts";
import type { CheckpointStorage, CheckpointStorageOptions } from "./types.ts";
import { UnfencedSaver } from "./unfenced-saver.ts";
import { copyThread, deleteRun, deleteThread, deleteUnended } from "./upkeep.ts";

export type * from "./types.ts";

const CACHE_BYTES = 64 * 1024 * 1024;

/** Holds no connection, so it needs no `close`. */
export const createCheckpointStorage = (options: CheckpointStorageOptions): CheckpointStorage => {
  const { database, cacheBytes = CACHE_BYTES, logger } = options;
  const cache = new ContentCache(cacheBytes);
  const names = new KnownNames();
  const reader = new CheckpointReader(database, cache, names);
  const parts: SaverParts = {
    database,
    cache,
    reader,
    names,
    valueCharactersAtMost: options.valueCharactersAtMost,
    onWritten: options.onWritten,
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

    ...createStateReads(database, reader, logger),
    latestOfRun: (threadId, runId) => findLatestOfRun(database, threadKey(threadId), runId),
    placeOfRun: (threadId, runId) => findPlaceOfRun(database, threadKey(threadId), runId),

    takeBackAnswers: ({ threadId, ...attempt }) =>
      deleteUnended(database, { threadId: threadKey(threadId), ...attempt }),
    deleteRun: (threadId, runId, queryable) =>
      within(queryable, (transaction) => deleteRun(transaction, threadKey(threadId), runId)),
    deleteThread: (threadId, queryable = database) => deleteThread(queryable, threadKey(threadId)),
    copyThread: (fromThreadId, toThreadId, queryable = database) =>
      copyThread(queryable, threadKey(fromThreadId), threadKey(toThreadId)),
    keepLatest: (threadId, queryable) =>
      within(queryable, (transaction) =>
        keepLatest(transaction, threadKey(threadId), new CheckpointReader(transaction, cache, names)),
      ),
    mergeHeadMetadata: (threadId, metadata) =>
      database.transaction((transaction) => mergeHeadMetadata(transaction, threadKey(threadId), metadata)),
    storage: (threadId) => measureThread(database, threadKey(threadId), threadId, reader),
    countWrites: async (threadId) =>
      (await readThread(database, threadKey(threadId))).map((row) => ({
        checkpointNs: row.checkpoint_ns,
        checkpointId: row.checkpoint_id,
        writes: reader.texts(row).row.writes.length,
      })),
  };
};
