import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  ERROR,
  INTERRUPT,
  WRITES_IDX_MAP,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointTuple,
  type DeltaChannelHistory,
  type PendingWrite,
} from "@langchain/langgraph-checkpoint";
import type { Database } from "../../platform/database/database.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import { toJsonb } from "../../platform/lib/jsonb.ts";
import { ownField } from "../../platform/lib/names.ts";
import { boundedFailure } from "../../platform/lib/thrown.ts";
import { classesBesideThis, type ValueClasses } from "../values/classes.ts";
import { encode, treeText } from "../values/encoding.ts";
import { referencesIn } from "../values/large-strings.ts";
import {
  checkpointOf,
  isReadable,
  placeOf,
  requireCheckpoint,
  requireSeparable,
  requireUuid,
} from "./config.ts";
import type { ContentCache } from "./content-reader.ts";
import { deltaChannelsIn, noHistory, readDeltaHistory } from "./delta-channels.ts";
import { isReservedMetadata, ownMetadata, splitMetadata, type OwnMetadata } from "./metadata.ts";
import { asStorageError, type WriteQueueOptions } from "./queue.ts";
import { migratePendingSends, reviveTuple, type CheckpointReader, type LoadedCheckpoint } from "./reader.ts";
import { namesOf, type KnownNames } from "./names.ts";
import { composeRecord, type TaskWrite } from "./record.ts";
import { readRecords, readRow, readRows, rowFilterOf } from "./rows.ts";
import type { TupleFilter } from "./types.ts";
import type { StoredValue, ValueWriter } from "./values.ts";
import { ThreadWriter, type KnownCheckpoint } from "./writer.ts";

export interface SaverParts {
  database: Database;
  cache: ContentCache;
  reader: CheckpointReader;
  names: KnownNames;
  valueCharactersAtMost: number | undefined;
  onWritten: ((seconds: number) => void) | undefined;
}

export interface SaverOptions {
  /** LangGraph's own metadata win over these; see metadata.ts. */
  metadata: JsonObject;
  /** Keys that stay searchable with encryption. */
  searchable?: readonly string[] | undefined;
  runId: string | null;
  /** True: `put` and `putWrites` resolve on commit, otherwise on acceptance. */
  waits: boolean;
}

const PAGE_CHECKPOINTS = 50;

/**
 * Takes channels outside `newVersions` from the parent, and stores of the others what the thread does not have.
 * Subclasses decide which writes are allowed.
 */
export abstract class ThreadSaver extends BaseCheckpointSaver {
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
    const { database, cache, names, valueCharactersAtMost, onWritten } = this.parts;
    return new ThreadWriter(key, { ...how, database, cache, names, onWritten }, valueCharactersAtMost);
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
    const filter = rowFilterOf(config, options);
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
      const { rows, isEnd } = await readRows(this.parts.database, { ...filter.rows, beforeSeq, limit });
      for await (const loaded of this.parts.reader.load(rows)) {
        if ("error" in loaded) throw loaded.error;
        yield await this.toTuple(loaded, filter.threadId ?? loaded.row.thread_id, learner);
      }
      if (isEnd) return;
      left -= rows.length;
      beforeSeq = rows.at(-1)?.seq;
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
    const parent = parentId === undefined ? undefined : await this.recall(writer, checkpointNs, parentId);
    const channels = await this.storeChannels(
      writer,
      parent,
      checkpointNs,
      checkpoint,
      metadata.source,
      newVersions,
    );
    const deltaChannels = deltaChannelsIn(writer, parent, checkpointNs, checkpoint, metadata);
    writer.learn(checkpointNs, checkpoint.id, {
      versions: { ...checkpoint.channel_versions },
      channels,
      deltaChannels,
    });
    const names = namesOf(checkpoint);
    const { common, rest } = splitMetadata(metadata, this.own);
    const { hash, unstored } = this.parts.names.refer(names, treeText(encode(common)));
    const place = { checkpoint_ns: checkpointNs, checkpoint_id: checkpoint.id };
    const committed = writer.write({
      names: unstored,
      checkpoint: {
        checkpointNs,
        checkpointId: checkpoint.id,
        parentId: parentId ?? null,
        runId: this.options.runId,
        ...this.metadataText(common, rest, place),
        names: hash,
        record: composeRecord(checkpoint, names, channels),
        deltaChannels,
      },
    });
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
    const queued = toTaskWrites(taskId, writes, writer.values);
    if (queued.length === 0) return;
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
    return readDeltaHistory(this.parts.reader, configured, channels, await this.classesGiven());
  }

  abstract withClasses(classes: ValueClasses): ThreadSaver;

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
    writer: ThreadWriter | undefined,
  ): Promise<CheckpointTuple> {
    const { row, body, contents } = loaded;
    const classes = await this.classesGiven();
    const known: KnownCheckpoint = {
      versions: { ...body.channel_versions },
      channels: new Map(),
      deltaChannels: row.delta_channels ?? [],
    };
    const tuple = await reviveTuple(loaded, threadId, classes, writer && known.channels);
    if (writer !== undefined) {
      for (const hash of contents.hashes()) writer.contents.remember(hash);
      for (const { list } of known.channels.values()) writer.values.lists.remember(list?.leaves ?? []);
      writer.learn(row.checkpoint_ns, row.checkpoint_id, known);
    }
    await migratePendingSends(tuple.checkpoint, this.parts.reader, loaded, classes);
    if (this.filter === undefined || row.checkpoint_ns !== "") return tuple;
    // Applying writes changes `versions_seen`, which tuples of one row must not share.
    const recreated = (): LoadedCheckpoint => ({ ...loaded, body: structuredClone(body) });
    return await this.filter(tuple, () => reviveTuple(recreated(), threadId, classes));
  }

  /** The parent of a new checkpoint. */
  private async recall(
    writer: ThreadWriter,
    checkpointNs: string,
    checkpointId: string,
  ): Promise<KnownCheckpoint | undefined> {
    const known = writer.recall(checkpointNs, checkpointId);
    if (known !== undefined) return known;
    if (writer.queue.isBusyWith(checkpointNs)) await writer.queue.settled();
    const { database, reader } = this.parts;
    const row = await readRow(database, { threadId: writer.threadId, checkpointNs, checkpointId });
    return row && toKnown(reader.texts(row), row.delta_channels, writer);
  }

  private async storeChannels(
    writer: ThreadWriter,
    parent: KnownCheckpoint | undefined,
    checkpointNs: string,
    checkpoint: Checkpoint,
    source: CheckpointMetadata["source"],
    newVersions: ChannelVersions,
  ): Promise<Map<string, StoredValue>> {
    const isFork = source === "fork";
    // An update of the state applies earlier writes of tasks without raising a version, and a copy of it follows its
    // parent.
    const mayDiffer = source === "update" || isFork;
    const channels = new Map<string, StoredValue>();
    for (const [channel, value] of Object.entries(checkpoint.channel_values)) {
      const before = parent?.channels.get(channel);
      const keepsVersion = !mayDiffer && !Object.hasOwn(newVersions, channel);
      const version = keepsVersion ? ownField(checkpoint.channel_versions, channel) : undefined;
      if (version !== undefined) {
        if (before !== undefined && ownField(parent?.versions, channel) === version) {
          channels.set(channel, before);
          continue;
        }
        if (!(await this.isStored(writer, checkpointNs, channel, version))) continue;
      }
      channels.set(channel, writer.values.store(channel, value, isFork ? undefined : before));
    }
    return channels;
  }

  /** Such a value is stored again, although it is neither new nor in the parent. */
  private async isStored(
    writer: ThreadWriter,
    checkpointNs: string,
    channel: string,
    version: number | string,
  ): Promise<boolean> {
    if (writer.knowsVersion(checkpointNs, channel, version)) return true;
    await writer.queue.settled();
    for (const row of await readRecords(this.parts.database, writer.threadId, checkpointNs)) {
      const { body, channels } = this.parts.reader.texts(row);
      if (ownField(body.channel_versions, channel) === version && channels.has(channel)) return true;
    }
    return false;
  }

  /** With encryption, keys that are not searchable are encrypted. */
  private metadataText(
    common: JsonObject,
    rest: JsonObject,
    key: { checkpoint_ns: string; checkpoint_id: string },
  ): { metadata: string; metadataText: string } {
    const { encryption } = this.parts.database;
    const stored = encryption.encryptedMetadata(encode(rest) as JsonObject, key, this.staysOpen);
    const { jsonb, exact } = toJsonb(treeText(stored));
    const metadataText =
      exact === undefined ? "" : treeText({ ...(encode(common) as JsonObject), ...stored });
    return { metadata: jsonb, metadataText };
  }
}

/** The texts of a checkpoint whose values nobody has read. The thread has what they refer to. */
const toKnown = (
  { body, channels }: Pick<LoadedCheckpoint, "body" | "channels">,
  deltaChannels: readonly string[] | null,
  writer: ThreadWriter,
): KnownCheckpoint => {
  for (const text of channels.values()) for (const hash of referencesIn(text)) writer.contents.remember(hash);
  return {
    versions: body.channel_versions,
    channels: new Map([...channels].map(([channel, text]) => [channel, { text }])),
    deltaChannels: deltaChannels ?? [],
  };
};

/** Indexes of LangGraph's own channels. A map, because a caller may name a channel `constructor`. */
const SPECIAL_INDEXES: ReadonlyMap<string, number> = new Map(Object.entries(WRITES_IDX_MAP));

/**
 * The last write to one of LangGraph's own channels counts. The others are numbered without them: with durability `exit`,
 * LangGraph stores again what it has read, in another order.
 */
const toTaskWrites = (taskId: string, writes: readonly PendingWrite[], values: ValueWriter): TaskWrite[] => {
  let position = 0;
  return writes.map(([channel, value]) => {
    const index = SPECIAL_INDEXES.get(channel) ?? position++;
    const shown = channel === ERROR ? boundedFailure(value) : value;
    return { taskId, index, channel, ...values.store(channel, shown) };
  });
};

const hasStopped = (writes: readonly PendingWrite[]): boolean =>
  writes.some(([channel]) => channel === ERROR || channel === INTERRUPT);
