import type { Database } from "../../platform/database/database.ts";
import { isPassing, retryPassing } from "../../platform/database/passing-faults.ts";
import {
  LeaseLostError,
  sqlState,
  StateLostError,
  StateStorageError,
  threadBusyForUpdate,
  ThreadChangedError,
  ThreadloomError,
} from "../../platform/domain/errors.ts";
import type { ContentCache } from "./content-reader.ts";
import { isHeld, type Fence } from "./fences.ts";
import type { KnownNames } from "./names.ts";
import { composeWrites } from "./record.ts";
import type { StoredSteps } from "./stored-steps.ts";
import type { AttemptOptions } from "./types.ts";
import {
  writeBatch,
  type Batch,
  type NewCheckpoint,
  type NewWrites,
  type QueuedWrites,
  type QueueItem,
} from "./write.ts";

export interface WriteQueueOptions {
  database: Database;
  threadId: string;
  fence: Fence | undefined;
  asynchronous: boolean;
  cache: ContentCache;
  names: KnownNames;
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
    const { database, threadId, fence, asynchronous, cache } = this.options;
    const rows = toBatch(items);
    // `last` is a checkpoint: it can't tell that a crash took contents which came with writes alone.
    const mayBeLost = rows.checkpoints.length > 0 || rows.contents.length === 0;
    const batch = { ...rows, threadId, fence, asynchronous: asynchronous && mayBeLost, last: this.last };
    const forMs = RETRY_SECONDS * 1_000;
    const newNames = items.flatMap(({ names }) => names ?? []);
    if (newNames.length > 0)
      await retryPassing(() => this.options.names.store(database, newNames), { forMs });
    const begunAt = performance.now();
    const held = await retryPassing(() => writeBatch(database, batch), { forMs });
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
    for (const { hash, text } of batch.contents) cache.add(hash, text);
  }
}

/** One row per key, because a statement can't write a row twice. */
const toBatch = (items: readonly QueueItem[]): Batch => {
  const checkpoints = new Map<string, Omit<NewCheckpoint, "writes">>();
  const tasks = new Map<string, QueuedWrites>();
  for (const { checkpoint, writes } of items) {
    if (checkpoint !== undefined) checkpoints.set(keyOf(checkpoint), checkpoint);
    if (writes !== undefined) {
      const key = `${keyOf(writes)}\n${writes.taskId}`;
      const before = tasks.get(key)?.writes ?? [];
      tasks.set(key, { ...writes, writes: [...before, ...writes.writes] });
    }
  }
  const together = new Map<string, QueuedWrites["writes"]>();
  const apart: NewWrites[] = [];
  for (const task of tasks.values()) {
    const key = keyOf(task);
    // A row of its own, so that a rollback can delete another run's writes alone.
    if (checkpoints.get(key)?.runId !== task.runId || !checkpoints.has(key))
      apart.push({ ...task, text: composeWrites(task.writes) });
    else together.set(key, [...(together.get(key) ?? []), ...task.writes]);
  }
  return {
    contents: items.flatMap(({ contents }) => contents),
    checkpoints: [...checkpoints].map(([key, checkpoint]) => {
      const writes = together.get(key);
      return { ...checkpoint, writes: writes === undefined ? "" : composeWrites(writes) };
    }),
    writes: apart,
  };
};

const keyOf = ({ checkpointNs, checkpointId }: { checkpointNs: string; checkpointId: string }): string =>
  `${checkpointNs}\n${checkpointId}`;

/** Approximate memory: the texts. */
const charactersOf = ({ checkpoint, writes, contents }: QueueItem): number => {
  let sum = checkpoint?.record.length ?? 0;
  if (writes !== undefined) for (const { text } of writes.writes) sum += text.length;
  for (const { text } of contents) sum += text.length;
  return sum;
};

/**
 * Returns refusals, lost leases, lost state and database errors unchanged. Every other error is a fault of this server,
 * not of the graph.
 */
export const asStorageError = (error: unknown): unknown =>
  error instanceof ThreadloomError ||
  error instanceof LeaseLostError ||
  error instanceof StateLostError ||
  error instanceof StateStorageError ||
  sqlState(error) !== undefined ||
  isPassing(error)
    ? error
    : new StateStorageError("The state of a thread could not be read or stored.", { cause: error });
