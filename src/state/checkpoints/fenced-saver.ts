import type { RunnableConfig } from "@langchain/core/runnables";
import type {
  ChannelVersions,
  Checkpoint,
  CheckpointMetadata,
  CheckpointTuple,
  PendingWrite,
} from "@langchain/langgraph-checkpoint";
import { retryPassing } from "../../platform/database/passing-faults.ts";
import { ObjectStoreError, ValueTooLargeError } from "../../platform/domain/errors.ts";
import type { AttemptOptions, AttemptSaver } from "./types.ts";
import type { Fence } from "./fences.ts";
import type { StoredSteps } from "./stored-steps.ts";
import type { ThreadWriter } from "./writer.ts";
import { threadKey } from "./thread-key.ts";
import { checkpointOf } from "./config.ts";
import { ThreadSaver, type SaverOptions, type SaverParts } from "./saver.ts";
import type { ValueClasses } from "../values/classes.ts";

/** A run waits so long for the object store. Then it goes back to the queue, as after an outage of the database. */
const OBJECT_STORE_PATIENCE_MS = 60_000;

/** The fence is the lease of an attempt or, for an update, the idle thread. An import has no fence. */
export class FencedSaver extends ThreadSaver implements AttemptSaver {
  readonly failed: AbortSignal;
  private readonly failure = new AbortController();
  private readonly writers = new Map<string, ThreadWriter>();
  private tooLarge: ValueTooLargeError | undefined;
  /** A copy of a state (`__copy__`). LangGraph reads it before the graph may refuse the copy's update. */
  private unsentCopy: CheckpointTuple | undefined;

  constructor(
    protected override readonly parts: SaverParts,
    options: SaverOptions,
    private readonly fence: Fence | undefined,
    /** Empty without a run. */
    private readonly ownThread = "",
    /** A thread whose only checkpoints come from this saver. */
    private readonly emptyThread?: string,
    private readonly waitsFor: Pick<AttemptOptions, "beforeNextStep" | "beforeWrite"> = {},
    private readonly steps?: StoredSteps,
  ) {
    super(parts, options);
    this.failed = this.failure.signal;
  }

  /** A node that calls a graph on another thread adds a second writer. */
  protected override writer(key: string): ThreadWriter {
    this.failed.throwIfAborted();
    let writer = this.writers.get(key);
    if (writer === undefined) {
      const { fence } = this;
      const asynchronous = !this.waits && (fence === undefined || fence.kind === "attempt");
      writer = this.newWriter(key, {
        fence,
        asynchronous,
        beforeWrite: this.waitsFor.beforeWrite,
        steps: key === this.ownThread ? this.steps : undefined,
      });
      const { failed } = writer.queue;
      failed.addEventListener("abort", () => this.failure.abort(failed.reason), { once: true });
      this.writers.set(key, writer);
    }
    return writer;
  }

  override withClasses(classes: ValueClasses): this {
    this.classes = classes;
    return this;
  }

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const configured = checkpointOf(config);
    if (configured !== undefined && configured.key === this.emptyThread) {
      const writer = this.writer(configured.key);
      if (!writer.hasWritten(configured.checkpointNs)) return undefined;
    }
    // Reading the database would send the copy.
    if (configured?.checkpointId !== undefined && configured.checkpointId === this.unsentCopy?.checkpoint.id)
      return this.unsentCopy;
    let tuple: CheckpointTuple | undefined;
    try {
      tuple = await super.getTuple(config);
    } catch (error) {
      if (!(error instanceof ObjectStoreError)) throw error;
      const read = () => super.getTuple(config);
      const after = (error: unknown) => error instanceof ObjectStoreError && !this.failed.aborted;
      tuple = await retryPassing(read, { forMs: OBJECT_STORE_PATIENCE_MS, after });
    }
    return tuple;
  }

  noteDeltaChannels(threadId: string, checkpointNs: string, channels: readonly string[]): void {
    this.writer(threadKey(threadId)).noteDeltaChannels(checkpointNs, channels);
  }

  protected override async beforeStep({ queue }: ThreadWriter): Promise<void> {
    // An update is sent when complete; waiting for room before that would never end.
    if (this.fence?.kind !== "attempt") return;
    await queue.room();
    await this.waitsFor.beforeNextStep?.();
  }

  override async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    // LangGraph would leave this rejection unhandled until its loop ends. The next checkpoint ends the graph.
    if (!this.waits && this.fence?.kind === "attempt" && this.failed.aborted) return;
    try {
      await super.putWrites(config, writes, taskId);
    } catch (error) {
      if (error instanceof ValueTooLargeError) this.tooLarge = error;
      throw error;
    }
  }

  /** LangGraph notices a refused write only after `put`. Storing the value by element would fill the heap first. */
  override async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    if (this.tooLarge !== undefined) throw this.tooLarge;
    const place = await super.put(config, checkpoint, metadata, newVersions);
    if (metadata.source === "fork" && this.fence?.kind === "unchanged-thread") {
      const parent = checkpointOf(config)?.checkpointId;
      this.unsentCopy = {
        config: place,
        checkpoint: { ...checkpoint, id: checkpointOf(place)?.checkpointId ?? checkpoint.id },
        metadata,
        ...(parent === undefined ? {} : { parentConfig: config }),
        pendingWrites: [],
      };
    }
    return place;
  }

  get lastUnsafe(): AttemptSaver["lastUnsafe"] {
    return this.writers.get(this.ownThread)?.queue.last;
  }

  whenReadable(checkpointNs: string, isStepOver: boolean): Promise<void> | undefined {
    return this.steps?.whenReadable(checkpointNs, isStepOver);
  }

  async flush(): Promise<void> {
    for (const writer of this.writers.values()) await writer.queue.settled();
    this.failed.throwIfAborted();
  }

  override deleteThread(): Promise<void> {
    return Promise.reject(new Error("A run can't delete a thread."));
  }
}
