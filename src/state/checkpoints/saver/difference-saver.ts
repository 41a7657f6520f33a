import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointTuple,
  type DeltaChannelHistory,
  type PendingWrite,
} from "@langchain/langgraph-checkpoint";
import type { Database } from "../../../platform/database/database.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import { classesBesideThis, type ValueClasses } from "../../values/classes.ts";
import type { ElementCache } from "../lists/element-cache.ts";
import type { CheckpointReader, LoadedCheckpoint } from "../read/checkpoint-reader.ts";
import { readRows } from "../read/row-statements.ts";
import type { KnownShapes } from "../rows/known-shapes.ts";
import { isReservedMetadata, ownMetadata, type OwnMetadata } from "../rows/metadata.ts";
import type { TupleFilter } from "../types.ts";
import { asStorageError } from "../write/storage-error.ts";
import { ThreadWriter, type KnownCheckpoint } from "../write/thread-writer.ts";
import type { WriteQueueOptions } from "../write/write-queue.ts";
import { recall, storeChannels } from "./channel-values.ts";
import { deltaChannelsIn } from "./delta-channels.ts";
import {
  checkpointOf,
  isReadable,
  placeOf,
  requireCheckpoint,
  requireSeparable,
  requireUuid,
} from "./checkpoint-config.ts";
import { migratePendingSends, reviveTuple } from "../read/checkpoint-tuples.ts";
import { noHistory, readDeltaHistory } from "./delta-history.ts";
import { listFilterOf } from "./list-filter.ts";
import { hasStopped, splitMetadata, toQueuedCheckpoint, toQueuedWrites } from "./queued-checkpoint.ts";

export interface SaverParts {
  database: Database;
  cache: ElementCache;
  reader: CheckpointReader;
  shapes: KnownShapes;
  valueCharactersAtMost: number | undefined;
  onWritten: ((seconds: number) => void) | undefined;
}

export interface SaverOptions {
  /** LangGraph's own metadata win over these; see rows/metadata.ts. */
  metadata: JsonObject;
  /** Keys that stay searchable with encryption. */
  searchable?: readonly string[] | undefined;
  runId: string | null;
  /** True: `put` and `putWrites` resolve on commit, otherwise on acceptance. */
  waits: boolean;
}

const PAGE_CHECKPOINTS = 50;

/**
 * Takes channels outside `newVersions` from the parent, and stores the others as differences. Subclasses decide which
 * writes are allowed.
 */
export abstract class DifferenceSaver extends BaseCheckpointSaver {
  filter: TupleFilter | undefined;
  /** Undefined: the classes of LangGraph beside this package. */
  protected classes: ValueClasses | undefined;
  endsWithWrites = false;
  private readonly own: OwnMetadata;
  /**
   * Whether a key of the metadata stays unencrypted. All others are encrypted, because LangGraph copies the config into
   * the metadata.
   */
  private readonly staysOpen: (key: string) => boolean;

  constructor(
    protected readonly parts: SaverParts,
    private readonly options: SaverOptions,
  ) {
    super();
    this.own = ownMetadata(options.metadata);
    const searchable = new Set(options.searchable);
    this.staysOpen = (key) => isReservedMetadata(key) || searchable.has(key);
  }

  protected get waits(): boolean {
    return this.options.waits;
  }

  /** `mayBeNew`: the caller needs nothing that the thread's present writer has learned. */
  protected abstract writer(key: string, mayBeNew: boolean): ThreadWriter;

  protected newWriter(
    key: string,
    how: Pick<WriteQueueOptions, "fence" | "asynchronous" | "beforeWrite" | "steps">,
  ): ThreadWriter {
    const { database, cache, shapes, valueCharactersAtMost, onWritten } = this.parts;
    const elements = () => cache.thread(key);
    return new ThreadWriter({
      ...how,
      database,
      threadId: key,
      elements,
      shapes,
      valueCharactersAtMost,
      onWritten,
    });
  }

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const configured = checkpointOf(config);
    if (configured === undefined || !isReadable(configured)) return undefined;
    const { key, checkpointNs, checkpointId } = configured;
    const writer = this.writer(key, true);
    if (writer.queue.isBusyWith(checkpointNs)) await writer.queue.settled();
    try {
      const loaded = await this.parts.reader.read({ threadId: key, checkpointNs, checkpointId });
      return loaded === undefined ? undefined : await this.toTuple(loaded, configured.threadId, writer);
    } catch (error) {
      throw asStorageError(error);
    }
  }

  override async *list(
    config: RunnableConfig,
    options: CheckpointListOptions = {},
  ): AsyncGenerator<CheckpointTuple> {
    const filter = listFilterOf(config, options);
    if (filter === undefined) return;
    const { threadId: key } = filter.rows;
    const writer = key === undefined ? undefined : this.writer(key, false);
    await writer?.queue.settled();
    // LangGraph lists a single checkpoint to replay from it.
    const learner = options.limit === 1 ? writer : undefined;
    let left = options.limit ?? Number.POSITIVE_INFINITY;
    let beforeSeq: string | undefined;
    while (left > 0) {
      const limit = Math.min(left, PAGE_CHECKPOINTS);
      const rows = await readRows(this.parts.database, { ...filter.rows, beforeSeq, limit });
      for await (const loaded of this.parts.reader.load(rows)) {
        if ("error" in loaded) throw loaded.error;
        yield await this.toTuple(loaded, filter.threadId ?? loaded.row.thread_id, learner);
      }
      left -= rows.length;
      beforeSeq = rows.at(-1)?.seq;
      if (rows.length < limit) return;
    }
  }

  override async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const { threadId, key, checkpointNs, checkpointId: parentId } = requireCheckpoint(config);
    if (checkpointNs === "") this.endsWithWrites = false;
    requireUuid(checkpoint.id);
    if (parentId !== undefined) requireUuid(parentId);
    // With durability `exit`, a run that made no new checkpoint stores the one it started from once more.
    if (parentId === checkpoint.id) return placeOf(threadId, checkpointNs, checkpoint.id);
    const writer = this.writer(key, false);
    const given = { checkpoint, checkpointNs, parentId, newVersions, source: metadata.source };
    const parent =
      parentId === undefined ? undefined : await recall(this.parts, writer, checkpointNs, parentId);
    const known: KnownCheckpoint = {
      versions: { ...checkpoint.channel_versions },
      channels: await storeChannels(this.parts, writer, parent, given),
      deltaChannels: deltaChannelsIn(writer, parent, given, metadata),
    };
    writer.learn(checkpointNs, checkpoint.id, known);
    const { queued, newShape } = toQueuedCheckpoint(given, known, splitMetadata(metadata, this.own), {
      runId: this.options.runId,
      shapes: this.parts.shapes,
      encryption: this.parts.database.encryption,
      staysOpen: this.staysOpen,
    });
    const committed = writer.write({ checkpoint: queued }, newShape);
    await this.acknowledge(writer, committed);
    return placeOf(threadId, checkpointNs, checkpoint.id);
  }

  override async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    const { key, checkpointNs, checkpointId } = requireCheckpoint(config);
    if (checkpointId === undefined)
      throw new Error("The writes of a task can't be stored without a checkpoint_id.");
    requireUuid(checkpointId);
    requireSeparable("task id", taskId);
    if (checkpointNs === "") this.endsWithWrites = !hasStopped(writes);
    const writer = this.writer(key, false);
    const queued = toQueuedWrites(writes, writer.values);
    if (queued.size === 0) return;
    const { runId } = this.options;
    await this.acknowledge(
      writer,
      writer.write({ writes: { checkpointNs, checkpointId, taskId, runId, writes: queued } }),
    );
  }

  override async getDeltaChannelHistory(options: {
    config: RunnableConfig;
    channels: string[];
  }): Promise<Record<string, DeltaChannelHistory>> {
    const { config, channels } = options;
    const configured = checkpointOf(config);
    if (configured === undefined) return noHistory(channels);
    const writer = this.writer(configured.key, false);
    writer.noteDeltaChannels(configured.checkpointNs, channels);
    await writer.queue.settled();
    return readDeltaHistory(this.parts, configured, channels, await this.classesGiven());
  }

  abstract withClasses(classes: ValueClasses): DifferenceSaver;

  private async classesGiven(): Promise<ValueClasses> {
    return this.classes ?? (await classesBesideThis());
  }

  abstract override deleteThread(threadId: string): Promise<void>;

  /** `flush` reports the failure, so this rejection is ignored. */
  private async acknowledge(writer: ThreadWriter, committed: Promise<void>): Promise<void> {
    if (this.waits) return await committed;
    committed.catch(() => undefined);
    await this.beforeStep(writer);
  }

  /** The graph awaits this instead of the commit. */
  protected beforeStep(_writer: ThreadWriter): Promise<void> | undefined {
    return undefined;
  }

  private async toTuple(
    loaded: LoadedCheckpoint,
    threadId: string,
    learner: ThreadWriter | undefined,
  ): Promise<CheckpointTuple> {
    const classes = await this.classesGiven();
    const tuple = await reviveTuple(loaded, threadId, learner, classes);
    await migratePendingSends(tuple.checkpoint, this.parts.reader, loaded, classes);
    if (this.filter === undefined || loaded.row.checkpoint_ns !== "") return tuple;
    // Applying writes changes `versions_seen`, which tuples of one row must not share.
    const recreated = (): LoadedCheckpoint => ({ ...loaded, body: structuredClone(loaded.body) });
    return await this.filter(tuple, () => reviveTuple(recreated(), threadId, undefined, classes));
  }
}
