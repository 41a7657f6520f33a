import type { Database } from "../../../platform/database/database.ts";
import { retryPassing } from "../../../platform/database/passing-faults.ts";
import {
  LeaseLostError,
  sqlState,
  StateLostError,
  threadBusyForUpdate,
  ThreadChangedError,
  UNIQUE_VIOLATION,
} from "../../../platform/domain/errors.ts";
import { wholeLength } from "../../values/large-strings.ts";
import { toBatch, type QueueItem } from "./batch.ts";
import type { AttemptOptions } from "../types.ts";
import type { ThreadElements } from "../lists/element-cache.ts";
import type { ThreadLists } from "../lists/thread-lists.ts";
import { isHeld, type Fence } from "./fences.ts";
import { storeShapes } from "./store-shapes.ts";
import type { StoredSteps } from "./stored-steps.ts";
import { writeBatch } from "./write-batch.ts";
import type { KnownShapes } from "../rows/known-shapes.ts";
import { asStorageError } from "./storage-error.ts";

export interface WriteQueueOptions {
  database: Database;
  threadId: string;
  fence: Fence | undefined;
  asynchronous: boolean;
  threadLists: ThreadLists;
  /**
   * Called for each statement, because a thread that the cache has dropped would grow uncounted. At 1 MB a step a run
   * filled the heap in 40 s.
   */
  elements: () => ThreadElements;
  shapes: KnownShapes;
  /** Called after each statement, with its seconds. */
  onWritten?: ((seconds: number) => void) | undefined;
  beforeWrite?: AttemptOptions["beforeWrite"];
  steps?: StoredSteps | undefined;
}

/** Longer than a failover of the database. A lost lease ends the retries earlier. */
const RETRY_SECONDS = 15;
/**
 * With durability `async`, quick steps share one statement, because a statement costs more than its contents. A crash
 * loses these milliseconds, as `async` allows.
 */
const GATHER_MS = 5;
/** Beyond these limits the graph waits: a fast graph would fill the memory. */
const WAITING_AT_MOST = 64;
const WAITING_CHARACTERS_AT_MOST = 1_000_000;

/** One statement runs at a time; later items share the next one. After the first error the queue stores nothing. */
export class WriteQueue {
  /** Aborts with the error that ended the queue. */
  readonly failed: AbortSignal;
  private readonly failure = new AbortController();
  private waiting: QueueItem[] = [];
  private waitingCharacters = 0;
  private awaitingRoom: Array<() => void> = [];
  private underWay: QueueItem[] = [];
  private pumping: Promise<void> | undefined;
  /** A caller waits for the queued items. */
  private hurried = false;
  private endGathering: (() => void) | undefined;
  /** Committed without waiting for the disk. */
  last: { checkpointNs: string; checkpointId: string } | undefined;

  constructor(private readonly options: WriteQueueOptions) {
    this.failed = this.failure.signal;
  }

  /** Resolves on commit. Throws at once if the queue has failed. */
  add(item: QueueItem): Promise<void> {
    this.failed.throwIfAborted();
    this.waiting.push(item);
    this.waitingCharacters += charactersOf(item);
    this.options.steps?.queued(item);
    return this.pumped();
  }

  /** Undefined: the queue has room. Never rejects: the next `add` throws the error that ended the queue. */
  room(): Promise<void> | undefined {
    const isFull =
      this.waiting.length >= WAITING_AT_MOST || this.waitingCharacters >= WAITING_CHARACTERS_AT_MOST;
    if (!isFull) return undefined;
    this.endGathering?.();
    return new Promise((resolve) => this.awaitingRoom.push(resolve));
  }

  /** Sends all items at once, and resolves on commit. */
  settled(): Promise<void> {
    this.hurried = this.waiting.length > 0 || this.pumping !== undefined;
    this.endGathering?.();
    return this.pumped();
  }

  private async pumped(): Promise<void> {
    this.failed.throwIfAborted();
    if (this.waiting.length > 0 || this.pumping !== undefined) {
      await (this.pumping ??= this.pump());
      this.failed.throwIfAborted();
    }
  }

  private gather(): Promise<void> {
    const { fence, asynchronous } = this.options;
    // An update is stored whole or not at all: LangGraph calls `put` before its reducers can refuse a part.
    if (!this.hurried && fence?.kind === "unchanged-thread") {
      return new Promise((resolve) => (this.endGathering = resolve));
    }
    // The same turn may bring more: a step's checkpoint and the writes of its first tasks.
    if (this.hurried || !asynchronous) return new Promise((resolve) => setImmediate(resolve));
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, GATHER_MS);
      this.endGathering = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Undefined: any namespace. */
  isBusyWith(checkpointNs?: string): boolean {
    const isOf = ({ checkpoint, writes }: QueueItem): boolean =>
      checkpointNs === undefined || (checkpoint ?? writes)?.checkpointNs === checkpointNs;
    return this.waiting.some(isOf) || this.underWay.some(isOf);
  }

  private async pump(): Promise<void> {
    try {
      while (this.waiting.length > 0) {
        await this.gather();
        this.endGathering = undefined;
        const items = this.waiting;
        this.empty();
        this.underWay = items;
        await this.options.beforeWrite?.();
        await this.send(items);
        this.options.steps?.stored(items);
        this.underWay = [];
      }
    } catch (error) {
      this.empty();
      this.underWay = [];
      this.failure.abort(asStorageError(error));
    } finally {
      this.hurried = false;
      this.pumping = undefined;
    }
  }

  private empty(): void {
    this.waiting = [];
    this.waitingCharacters = 0;
    for (const resolve of this.awaitingRoom.splice(0)) resolve();
  }

  private async send(items: QueueItem[]): Promise<void> {
    const { database, threadId, fence, asynchronous, threadLists, shapes } = this.options;
    const elements = this.options.elements();
    const giveUpAt = performance.now() + RETRY_SECONDS * 1_000;
    const write = async (): Promise<boolean> => {
      for (;;) {
        try {
          return await writeBatch(
            database,
            { threadId, fence, asynchronous, ...(this.last && { last: this.last }) },
            toBatch(items, threadLists, elements, database.encryption),
          );
        } catch (error) {
          if (sqlState(error) !== UNIQUE_VIOLATION || performance.now() > giveUpAt) throw error;
          // Another writer has taken the positions (a fork, an update of the state), or this batch was committed and
          // its answer was lost.
          threadLists.moveAside();
        }
      }
    };
    const forMs = RETRY_SECONDS * 1_000;
    const newShapes = items.flatMap((item) => item.shapes).filter(({ hash }) => !shapes.isStored(hash));
    await retryPassing(() => storeShapes(database, newShapes), { forMs });
    for (const { hash } of newShapes) shapes.markStored(hash);
    const begunAt = performance.now();
    const held = await retryPassing(write, { forMs });
    this.options.onWritten?.((performance.now() - begunAt) / 1_000);
    if (!held && fence !== undefined) {
      if (fence.kind === "idle-thread") throw threadBusyForUpdate(threadId);
      if (fence.kind === "unchanged-thread") throw new ThreadChangedError(threadId);
      if (
        this.last !== undefined &&
        (await retryPassing(() => isHeld(database, { ...fence, threadId }), { forMs }))
      )
        throw new StateLostError(threadId);
      throw new LeaseLostError(fence.runId, fence.attempt);
    }
    const last = items.findLast(({ checkpoint }) => checkpoint !== undefined)?.checkpoint;
    if (asynchronous && last !== undefined) {
      this.last = { checkpointNs: last.checkpointNs, checkpointId: last.checkpointId };
    }
    for (const item of items) {
      threadLists.markStored(item.elements);
      for (const added of item.elements) elements.addElements(added, added.trees);
      for (const { hash, wholeText } of item.contents)
        if (wholeText !== undefined) elements.addContent(hash, wholeText);
    }
  }
}

/** Approximate memory: the texts of the values. */
const charactersOf = ({ checkpoint, writes, elements, contents }: QueueItem): number => {
  let sum = checkpoint?.body.length ?? 0;
  if (checkpoint !== undefined) {
    for (const { text } of checkpoint.channels.values()) sum += text?.length ?? 0;
  }
  if (writes !== undefined) for (const [, { text }] of writes.writes.values()) sum += text.length;
  for (const { texts } of elements) for (const text of texts) sum += wholeLength(text);
  for (const { text, wholeText = text } of contents) sum += wholeText.length;
  return sum;
};
