import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  ERROR,
  INTERRUPT,
  maxChannelVersion,
  TASKS,
  WRITES_IDX_MAP,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointTuple,
  type DeltaChannelHistory,
  type PendingWrite,
} from "@langchain/langgraph-checkpoint";
import type { Database } from "../../database/database.ts";
import { isUuid } from "../../lib/ids.ts";
import type { JsonObject } from "../../lib/json.ts";
import { toJsonb } from "../../lib/jsonb.ts";
import { ownField } from "../../lib/names.ts";
import { boundedFailure } from "../../lib/thrown.ts";
import { noHistory, readDeltaHistory } from "./delta-history.ts";
import { encode, treeText } from "../../values/encoding.ts";
import type { QueuedWrites } from "../write/batch.ts";
import { ownMetadata, type OwnMetadata } from "../rows/metadata.ts";
import {
  configurable,
  isReadable,
  checkpointOf,
  requireCheckpoint,
  requireSeparable,
  requireUuid,
} from "./checkpoint-config.ts";
import type { CheckpointReader, LoadedCheckpoint } from "../read/checkpoint-reader.ts";
import { readRows } from "../read/row-statements.ts";
import { readAllReferences, readReferences } from "../read/value-references.ts";
import type { KnownShapes } from "../rows/known-shapes.ts";
import { threadKey } from "../rows/thread-key.ts";
import { reviveTuple, reviveWrite, toKnown } from "./checkpoint-tuples.ts";
import type { TupleFilter } from "../types.ts";
import { asStorageError } from "../write/storage-error.ts";
import type { StoredValue } from "../rows/stored-value.ts";
import { composeBody } from "../rows/checkpoint-body.ts";
import type { KnownCheckpoint, ThreadWriter } from "../write/thread-writer.ts";

export interface SaverParts {
  database: Database;
  reader: CheckpointReader;
  shapes: KnownShapes;
}

export interface SaverOptions {
  /** Goes into the metadata of every checkpoint, under LangGraph's own; see metadata.ts. */
  metadata: JsonObject;
  /** The run that writes. */
  runId: string | null;
  /** True: `put` and `putWrites` resolve when what they were given is committed, else when it is accepted. */
  waits: boolean;
}

/** Where writes of LangGraph's own channels stand. A map: a caller may name a channel `constructor`. */
const SPECIAL_INDEXES: ReadonlyMap<string, number> = new Map(Object.entries(WRITES_IDX_MAP));
/** A list() without a limit reads so many checkpoints at a time. */
const PAGE_CHECKPOINTS = 50;

/**
 * LangGraph's checkpointer on the tables of this room. Subclasses say who writes: an attempt, or anybody.
 *
 * Channels that `newVersions` doesn't name are taken over from the parent, those that it names are stored by
 * difference to the parent's.
 */
export abstract class DifferenceSaver extends BaseCheckpointSaver {
  filter: TupleFilter | undefined;
  /** See AttemptSaver. */
  endsWithWrites = false;
  private readonly own: OwnMetadata;

  constructor(
    protected readonly parts: SaverParts,
    private readonly options: SaverOptions,
  ) {
    super();
    this.own = ownMetadata(options.metadata);
  }

  protected get waits(): boolean {
    return this.options.waits;
  }

  /** What this saver keeps in mind of a thread; `anew` if nothing before this moment is needed. */
  protected abstract writer(key: string, anew: boolean): ThreadWriter;

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const place = checkpointOf(config);
    if (place === undefined || !isReadable(place)) return undefined;
    const { key, checkpointNs, checkpointId } = place;
    const writer = this.writer(key, true);
    if (writer.queue.isBusyWith(checkpointNs)) await writer.queue.settled();
    try {
      const loaded = await this.parts.reader.read({ threadId: key, checkpointNs, checkpointId });
      return loaded === undefined ? undefined : await this.toTuple(loaded, place.threadId, writer);
    } catch (error) {
      throw asStorageError(error);
    }
  }

  override async *list(
    config: RunnableConfig,
    options: CheckpointListOptions = {},
  ): AsyncGenerator<CheckpointTuple> {
    const {
      thread_id: threadId,
      checkpoint_ns: checkpointNs,
      checkpoint_id: checkpointId,
    } = configurable(config);
    const before: unknown = options.before?.configurable?.checkpoint_id;
    for (const id of [checkpointId, before]) if (typeof id === "string" && id !== "" && !isUuid(id)) return;
    if (typeof checkpointNs === "string" && checkpointNs.includes("\u0000")) return;
    const { run_id: runId, ...metadata } = (options.filter ?? {}) as JsonObject;
    if (runId !== undefined && !(typeof runId === "string" && isUuid(runId))) return;
    const key = typeof threadId === "string" ? threadKey(threadId) : undefined;
    const writer = key === undefined ? undefined : this.writer(key, false);
    await writer?.queue.settled();
    let left = options.limit ?? Number.POSITIVE_INFINITY;
    let cursor = typeof before === "string" && before !== "" ? before : undefined;
    while (left > 0) {
      const limit = Math.min(left, PAGE_CHECKPOINTS);
      const rows = await readRows(this.parts.database, {
        threadId: key,
        checkpointNs: typeof checkpointNs === "string" ? checkpointNs : undefined,
        checkpointId: typeof checkpointId === "string" && checkpointId !== "" ? checkpointId : undefined,
        beforeCheckpointId: cursor,
        runId,
        metadata,
        limit,
      });
      // A single one is the start of a replay: what is written next is written by difference to it.
      const learner = options.limit === 1 ? writer : undefined;
      for await (const loaded of this.parts.reader.load(rows)) {
        if ("error" in loaded) throw loaded.error;
        const id =
          key === loaded.row.thread_id && typeof threadId === "string" ? threadId : loaded.row.thread_id;
        yield await this.toTuple(loaded, id, learner);
      }
      left -= rows.length;
      cursor = rows[rows.length - 1]?.checkpoint_id;
      if (rows.length < limit || cursor === undefined) return;
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
    const writer = this.writer(key, false);
    const parent = parentId === undefined ? undefined : await this.recall(writer, checkpointNs, parentId);
    const versions = checkpoint.channel_versions;
    const channels = new Map<string, StoredValue>();
    for (const [channel, value] of Object.entries(checkpoint.channel_values)) {
      const before = parent?.channels.get(channel);
      const version = ownField(versions, channel);
      if (!Object.hasOwn(newVersions, channel) && version !== undefined) {
        if (before !== undefined && ownField(parent?.versions, channel) === version) {
          // An update of the state applies what tasks had written before it without raising a version.
          if (metadata.source !== "update") {
            channels.set(channel, before);
            continue;
          }
        } else if (!(await this.isStored(writer, checkpointNs, channel, version))) continue;
      }
      channels.set(channel, writer.values.storeChannel(channel, value, before));
    }
    writer.learn(checkpointNs, checkpoint.id, { versions: { ...versions }, channels });
    const { body, channelNames, shape } = composeBody(checkpoint);
    const { common, rest } = this.splitMetadata(metadata);
    const { newShape, hash } = this.parts.shapes.refer(shape, treeText(encode(common)));
    const { jsonb, exact } = toJsonb(treeText(encode(rest)));
    const row = {
      checkpointNs,
      checkpointId: checkpoint.id,
      parentId: parentId ?? null,
      runId: this.options.runId,
      metadata: jsonb,
      metadataText: exact === undefined ? "" : treeText(encode({ ...common, ...rest })),
      body,
      channelNames,
      shape: hash,
      channels,
    };
    const committed = writer.write({ checkpoint: row }, newShape);
    await this.acknowledge(writer, committed);
    return {
      configurable: { thread_id: threadId, checkpoint_ns: checkpointNs, checkpoint_id: checkpoint.id },
    };
  }

  override async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    const { key, checkpointNs, checkpointId } = requireCheckpoint(config);
    if (checkpointId === undefined)
      throw new Error("The writes of a task can't be stored without a checkpoint_id.");
    requireUuid(checkpointId);
    requireSeparable("task id", taskId);
    if (checkpointNs === "") {
      this.endsWithWrites = !writes.some(([channel]) => channel === ERROR || channel === INTERRUPT);
    }
    const writer = this.writer(key, false);
    const stored: QueuedWrites["writes"] = new Map();
    for (const [position, [channel, value]] of writes.entries()) {
      const index = SPECIAL_INDEXES.get(channel) ?? position;
      const shown = channel === ERROR ? boundedFailure(value) : value;
      if (index < 0 || !stored.has(index)) stored.set(index, [channel, writer.values.write(shown)]);
    }
    if (stored.size === 0) return;
    const { runId } = this.options;
    await this.acknowledge(
      writer,
      writer.write({ writes: { checkpointNs, checkpointId, taskId, runId, writes: stored } }),
    );
  }

  override async getDeltaChannelHistory(options: {
    config: RunnableConfig;
    channels: string[];
  }): Promise<Record<string, DeltaChannelHistory>> {
    const { config, channels } = options;
    const place = checkpointOf(config);
    if (place === undefined) return noHistory(channels);
    await this.writer(place.key, false).queue.settled();
    return readDeltaHistory(this.parts, place, channels);
  }

  abstract override deleteThread(threadId: string): Promise<void>;

  /** What the metadata of most checkpoints of a graph and an assistant have in common, which is kept once, and the rest. */
  private splitMetadata(metadata: CheckpointMetadata): OwnMetadata {
    const { source, parents, ...given } = metadata;
    const rest: JsonObject = { ...this.own.rest, ...(given as JsonObject) };
    // An update of a state gives what it found in the metadata of the checkpoint before.
    const own = Object.entries(this.own.common).filter(([key]) => !Object.hasOwn(rest, key));
    const common: JsonObject = { source, ...Object.fromEntries(own) };
    const hasParents = parents !== undefined && Object.keys(parents).length > 0;
    if (parents !== undefined) (hasParents ? rest : common).parents = parents;
    return { common, rest };
  }

  /** Waits if this saver does; else only sees to it that a failure, which `flush` reports, is not unhandled, too. */
  private async acknowledge(writer: ThreadWriter, committed: Promise<void>): Promise<void> {
    if (this.waits) return await committed;
    committed.catch(() => undefined);
    await this.pace(writer);
  }

  /** What a graph that doesn't wait until its checkpoints are committed waits for all the same; undefined: nothing. */
  protected pace(_writer: ThreadWriter): Promise<void> | undefined {
    return undefined;
  }

  private async recall(
    writer: ThreadWriter,
    checkpointNs: string,
    id: string,
  ): Promise<KnownCheckpoint | undefined> {
    const known = writer.recall(checkpointNs, id);
    if (known !== undefined) return known;
    if (writer.queue.isBusyWith(checkpointNs)) await writer.queue.settled();
    const row = await readReferences(this.parts.database, writer.threadId, checkpointNs, id);
    return row === undefined ? undefined : toKnown(row, this.parts.shapes);
  }

  /**
   * A value that neither is new nor stands in the parent: a copy of another checkpoint (a fork beside it), or one
   * that nobody has stored. The first is stored with the copy, the second isn't.
   */
  private async isStored(
    writer: ThreadWriter,
    checkpointNs: string,
    channel: string,
    version: number | string,
  ) {
    if (writer.knowsVersion(checkpointNs, channel, version)) return true;
    await writer.queue.settled();
    const rows = await readAllReferences(this.parts.database, writer.threadId, checkpointNs);
    return rows
      .map((row) => toKnown(row, this.parts.shapes))
      .some((known) => ownField(known.versions, channel) === version && known.channels.has(channel));
  }

  private async toTuple(
    loaded: LoadedCheckpoint,
    threadId: string,
    learner: ThreadWriter | undefined,
  ): Promise<CheckpointTuple> {
    const tuple = await reviveTuple(loaded, threadId, learner);
    if (tuple.checkpoint.v < 4) await this.migratePendingSends(tuple.checkpoint, loaded);
    if (this.filter === undefined || loaded.row.checkpoint_ns !== "") return tuple;
    // Applying writes changes what nodes have seen, which all that is revived from one row shares.
    const anew = (): LoadedCheckpoint => ({ ...loaded, body: structuredClone(loaded.body) });
    return await this.filter(tuple, () => reviveTuple(anew(), threadId, undefined));
  }

  /** Before version 4 what was sent to nodes stood in the parent's writes. */
  private async migratePendingSends(checkpoint: Checkpoint, { row }: LoadedCheckpoint): Promise<void> {
    if (row.parent_id === null) return;
    const place = { threadId: row.thread_id, checkpointNs: row.checkpoint_ns, checkpointId: row.parent_id };
    const parent = await this.parts.reader.read(place);
    const sends: unknown[] = [];
    for (const write of parent?.writes ?? []) {
      if (write.channel === TASKS && parent !== undefined) sends.push((await reviveWrite(write, parent))[2]);
    }
    const versions = Object.values(checkpoint.channel_versions);
    checkpoint.channel_values[TASKS] = sends;
    checkpoint.channel_versions[TASKS] =
      versions.length > 0 ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
  }
}
