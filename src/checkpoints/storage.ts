import type { RunnableConfig } from "@langchain/core/runnables";
import type { CheckpointTuple } from "@langchain/langgraph-checkpoint";
import type { Queryable } from "../database/database.ts";
import { StateLostError } from "../lib/errors.ts";
import { ElementCache } from "./lists/element-cache.ts";
import { copyThread } from "./upkeep/copying.ts";
import { deleteRun, deleteThread } from "./upkeep/deleting.ts";
import { mergeHeadMetadata } from "./upkeep/head-metadata.ts";
import { keepLatest } from "./upkeep/pruning.ts";
import { checkpointOf } from "./saver/checkpoint-config.ts";
import { CheckpointReader } from "./read/checkpoint-reader.ts";
import { findLatestOfRun } from "./read/row-statements.ts";
import type { Fence } from "./write/fences.ts";
import { DifferenceSaver, type SaverOptions, type SaverParts } from "./saver/saver.ts";
import { KnownShapes } from "./rows/known-shapes.ts";
import { createStateReads } from "./read/state-reads.ts";
import { threadKey } from "./rows/thread-key.ts";
import { measureThread } from "./upkeep/thread-size.ts";
import type { AttemptOptions, AttemptSaver, CheckpointStorage, CheckpointStorageOptions } from "./types.ts";
import { ThreadWriter } from "./write/thread-writer.ts";

export type * from "./types.ts";

const CACHE_BYTES = 64 * 1024 * 1024;
/** Threads whose state is being updated at the same time; for others a write reads a little more. */
const WRITERS_AT_MOST = 16;

interface Parts extends SaverParts {
  cache: ElementCache;
}

/** The saver for anybody: nothing is fenced, every call waits until it is committed. */
class FreeSaver extends DifferenceSaver {
  private readonly writers = new Map<string, ThreadWriter>();

  constructor(protected override readonly parts: Parts) {
    super(parts, { metadata: {}, runId: null, waits: true });
  }

  /** Every read begins anew, so that what is kept in mind is what the caller is working with. */
  protected override writer(key: string, anew: boolean): ThreadWriter {
    const before = this.writers.get(key);
    if (before !== undefined && !before.queue.failed.aborted && (!anew || before.queue.isBusyWith()))
      return before;
    const { database, cache, shapes } = this.parts;
    const writer = new ThreadWriter({
      database,
      threadId: key,
      fence: undefined,
      asynchronous: false,
      elements: () => cache.thread(key),
      shapes,
    });
    this.writers.delete(key);
    this.writers.set(key, writer);
    for (const [oldest, { queue }] of this.writers) {
      if (this.writers.size <= WRITERS_AT_MOST) break;
      if (!queue.isBusyWith()) this.writers.delete(oldest);
    }
    return writer;
  }

  override async deleteThread(threadId: string): Promise<void> {
    const key = threadKey(threadId);
    await deleteThread(this.parts.database, key);
    this.writers.delete(key);
    this.parts.cache.forget(key);
  }
}

/** The saver of one attempt, fenced by its lease; of one update of a state, fenced by the thread being idle; of an import. */
class FencedSaver extends DifferenceSaver implements AttemptSaver {
  readonly failed: AbortSignal;
  private readonly failure = new AbortController();
  private readonly writers = new Map<string, ThreadWriter>();

  constructor(
    protected override readonly parts: Parts,
    options: SaverOptions,
    private readonly fence: Fence | undefined,
    /** Of the run; empty without one. */
    private readonly ownThread = "",
    /** Has no checkpoints but those that this saver writes. */
    private readonly emptyThread?: string,
    private readonly beforeNextStep?: AttemptOptions["beforeNextStep"],
  ) {
    super(parts, options);
    this.failed = this.failure.signal;
  }

  /** One per thread for the whole attempt; more than one only if a node calls a graph on another thread. */
  protected override writer(key: string): ThreadWriter {
    this.failed.throwIfAborted();
    let writer = this.writers.get(key);
    if (writer === undefined) {
      const { database, cache, shapes } = this.parts;
      const { fence } = this;
      const isAttempt = fence?.kind === "attempt";
      const asynchronous = !this.waits && (isAttempt || fence === undefined);
      const elements = () => cache.thread(key);
      writer = new ThreadWriter({ database, threadId: key, fence, asynchronous, elements, shapes });
      const { failed } = writer.queue;
      failed.addEventListener(
        "abort",
        () => {
          if (failed.reason instanceof StateLostError) {
            cache.forgetAll();
            shapes.doubtStored();
          }
          this.failure.abort(failed.reason);
        },
        { once: true },
      );
      this.writers.set(key, writer);
    }
    return writer;
  }

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const place = checkpointOf(config);
    if (place !== undefined && place.key === this.emptyThread) {
      const writer = this.writer(place.key);
      if (!writer.hasWritten(place.checkpointNs)) return undefined;
    }
    return await super.getTuple(config);
  }

  protected override async pace({ queue }: ThreadWriter): Promise<void> {
    // An update of a state is sent when it is complete: what waits for room before that would wait for ever.
    if (this.fence?.kind !== "attempt") return;
    await queue.room();
    await this.beforeNextStep?.();
  }

  get lastUnsafe(): AttemptSaver["lastUnsafe"] {
    return this.writers.get(this.ownThread)?.queue.last;
  }

  async flush(): Promise<void> {
    for (const writer of this.writers.values()) await writer.queue.settled();
    this.failed.throwIfAborted();
  }

  override deleteThread(): Promise<void> {
    return Promise.reject(new Error("A run can't delete a thread."));
  }
}

/** Opens the room. Holds no connection of its own; there is nothing to close. */
export const createCheckpointStorage = (options: CheckpointStorageOptions): CheckpointStorage => {
  const { database, cacheBytes = CACHE_BYTES, logger } = options;
  const cache = new ElementCache(cacheBytes);
  const shapes = new KnownShapes();
  // What was committed without waiting for the disk is gone after a crash, and its places in lists are taken anew: what
  // is remembered of it would be wrong.
  database.onConnectionLost(() => {
    cache.forgetAll();
    shapes.doubtStored();
  });
  const parts: Parts = { database, cache, shapes, reader: new CheckpointReader(database, cache, shapes) };

  const within = <Result>(
    queryable: Queryable | undefined,
    work: (queryable: Queryable) => Promise<Result>,
  ): Promise<Result> => (queryable === undefined ? database.transaction(work) : work(queryable));

  return {
    saver: new FreeSaver(parts),
    saverForRead(filter) {
      const saver = new FreeSaver(parts);
      saver.filter = filter;
      return saver;
    },
    saverForAttempt(options: AttemptOptions) {
      const {
        threadId,
        runId,
        attempt,
        durability = "async",
        metadata = {},
        threadIsEmpty = false,
        beforeNextStep,
      } = options;
      return new FencedSaver(
        parts,
        { metadata, runId, waits: durability === "sync" },
        { kind: "attempt", runId, attempt },
        threadKey(threadId),
        threadIsEmpty ? threadKey(threadId) : undefined,
        beforeNextStep,
      );
    },
    saverForIdleThread: (threadVersion) =>
      new FencedSaver(
        parts,
        { metadata: {}, runId: null, waits: false },
        threadVersion === undefined ? { kind: "idle-thread" } : { kind: "unchanged-thread", threadVersion },
      ),
    saverForImport: () => new FencedSaver(parts, { metadata: {}, runId: null, waits: false }, undefined),

    ...createStateReads({ database, reader: parts.reader, logger }),
    latestOfRun: (threadId, runId) => findLatestOfRun(database, threadKey(threadId), runId),

    deleteRun: (threadId, runId, queryable) =>
      within(queryable, (transaction) => deleteRun(transaction, threadKey(threadId), runId)),
    async deleteThread(threadId, queryable = database) {
      await deleteThread(queryable, threadKey(threadId));
      cache.forget(threadKey(threadId));
    },
    copyThread: (fromThreadId, toThreadId, queryable = database) =>
      copyThread(queryable, threadKey(fromThreadId), threadKey(toThreadId)),
    keepLatest: (threadId, queryable) =>
      within(queryable, (transaction) => keepLatest(transaction, threadKey(threadId))),
    mergeHeadMetadata: (threadId, metadata) =>
      database.transaction((transaction) => mergeHeadMetadata(transaction, threadKey(threadId), metadata)),
    storage: (threadId) => measureThread(database, threadKey(threadId), threadId, shapes),
  };
};
