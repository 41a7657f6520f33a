import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  maxChannelVersion,
  TASKS,
  WRITES_IDX_MAP,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  type DeltaChannelHistory,
  type PendingWrite,
} from "@langchain/langgraph-checkpoint";
import type { Database } from "../database/database.ts";
import { isUuid } from "../lib/ids.ts";
import type { JsonObject } from "../lib/json.ts";
import { encode, setField, treeText } from "./encoding.ts";
import type { CheckpointReader, LoadedCheckpoint, LoadedWrite } from "./reader.ts";
import { readAllReferences, readAncestors, readReferences, readRows, type References } from "./repository.ts";
import { revive, settle, type Unfinished } from "./reviving.ts";
import { threadKey } from "./thread-key.ts";
import {
  fromRecord,
  isWholeList,
  recordTree,
  toSegments,
  type StoredValue,
  type ValueRecord,
} from "./values.ts";
import { bodyTexts, parseBody } from "./versions.ts";
import type { QueuedWrites } from "./write-queue.ts";
import type { KnownCheckpoint, ThreadWriter } from "./writer.ts";

export interface SaverParts {
  database: Database;
  reader: CheckpointReader;
}

export interface SaverOptions {
  /** Goes into the metadata of every checkpoint, under LangGraph's own. */
  metadata: JsonObject;
  /** The run that writes. */
  runId: string | null;
  /** True: `put` and `putWrites` resolve when what they were given is committed, else when it is accepted. */
  waits: boolean;
}

/** A list() without a limit reads so many checkpoints at a time. */
const PAGE_CHECKPOINTS = 50;
const ANCESTORS_AT_A_TIME = 200;
/** These stand between the texts of a statement; no node of a graph has one in its name. */
const SEPARATORS = ["\u0000", "\u001e", "\u001f", "\n"];
/** What jsonb refuses: NUL, and a surrogate that stands alone (JSON.stringify escapes only those). */
const NOT_IN_JSONB = /\\u0000|\\ud[89a-f][0-9a-f]{2}/g;

interface Place {
  threadId: string;
  key: string;
  checkpointNs: string;
  checkpointId: string | undefined;
}

/**
 * LangGraph's checkpointer on the tables of this room. Subclasses say who writes: an attempt, or anybody.
 *
 * Channels that `newVersions` doesn't name are taken over from the parent, those that it names are stored by
 * difference to the parent's.
 */
export abstract class DifferenceSaver extends BaseCheckpointSaver {
  constructor(
    protected readonly parts: SaverParts,
    private readonly options: SaverOptions,
  ) {
    super();
  }

  protected get waits(): boolean {
    return this.options.waits;
  }

  /** What this saver keeps in mind of a thread; `anew` if nothing before this moment is needed. */
  protected abstract writer(key: string, anew: boolean): ThreadWriter;

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const place = placeOf(config);
    if (place === undefined || !isReadable(place)) return undefined;
    const { key, checkpointNs, checkpointId } = place;
    const writer = this.writer(key, true);
    if (writer.queue.isBusyWith(checkpointNs)) await writer.queue.settled();
    const loaded = await this.parts.reader.read({ threadId: key, checkpointNs, checkpointId });
    return loaded === undefined ? undefined : this.toTuple(loaded, place.threadId, writer);
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
      for (const loaded of await this.parts.reader.load(rows)) {
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
    const { threadId, key, checkpointNs, checkpointId: parentId } = requirePlace(config);
    requireUuid(checkpoint.id);
    if (parentId !== undefined) requireUuid(parentId);
    const writer = this.writer(key, false);
    const parent = parentId === undefined ? undefined : await this.recall(writer, checkpointNs, parentId);
    const versions = checkpoint.channel_versions;
    const channels = new Map<string, StoredValue>();
    for (const [channel, value] of Object.entries(checkpoint.channel_values)) {
      const before = parent?.channels.get(channel);
      const version = versions[channel];
      if (!Object.hasOwn(newVersions, channel) && version !== undefined) {
        if (before !== undefined && parent?.versions[channel] === version) {
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
    const { body, shape } = bodyTexts(checkpoint);
    const { run_id: _, ...own } = this.options.metadata;
    const metadataText = treeText(encode({ ...own, ...metadata }));
    const exact = metadataText.search(NOT_IN_JSONB) < 0;
    const committed = writer.write({
      checkpoint: {
        checkpointNs,
        checkpointId: checkpoint.id,
        parentId: parentId ?? null,
        runId: this.options.runId,
        metadata: exact ? metadataText : metadataText.replace(NOT_IN_JSONB, "\\ufffd"),
        metadataText: exact ? "" : metadataText,
        body,
        shape: writer.values.keepApart(shape),
        channels,
      },
    });
    await this.acknowledge(committed);
    return {
      configurable: { thread_id: threadId, checkpoint_ns: checkpointNs, checkpoint_id: checkpoint.id },
    };
  }

  override async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    const { key, checkpointNs, checkpointId } = requirePlace(config);
    if (checkpointId === undefined)
      throw new Error("The writes of a task can't be stored without a checkpoint_id.");
    requireUuid(checkpointId);
    requireSeparable("task id", taskId);
    const writer = this.writer(key, false);
    const stored: QueuedWrites["writes"] = new Map();
    for (const [position, [channel, value]] of writes.entries()) {
      const index = WRITES_IDX_MAP[channel] ?? position;
      if (index < 0 || !stored.has(index)) stored.set(index, [channel, writer.values.store(value)]);
    }
    if (stored.size === 0) return;
    const { runId } = this.options;
    await this.acknowledge(
      writer.write({ writes: { checkpointNs, checkpointId, taskId, runId, writes: stored } }),
    );
  }

  override async getDeltaChannelHistory(options: {
    config: RunnableConfig;
    channels: string[];
  }): Promise<Record<string, DeltaChannelHistory>> {
    const histories = new Map<string, DeltaChannelHistory>(
      options.channels.map((channel) => [channel, { writes: [] }]),
    );
    const place = placeOf(options.config);
    let cursor = place?.checkpointId;
    if (place !== undefined && cursor === undefined) {
      cursor = (await this.getTuple(options.config))?.config.configurable?.checkpoint_id as
        string | undefined;
    }
    if (place !== undefined) await this.writer(place.key, false).queue.settled();
    const open = new Set(options.channels);
    while (place !== undefined && cursor !== undefined && isUuid(cursor) && open.size > 0) {
      const { key, checkpointNs } = place;
      const rows = await readAncestors(this.parts.database, key, checkpointNs, cursor, ANCESTORS_AT_A_TIME);
      const needed = rows.map((row) => ({ ...row, channels: pickChannels(row.channels, open) }));
      for (const loaded of await this.parts.reader.load(needed)) {
        for (const write of [...loaded.writes].sort(byTaskAndIndex).reverse()) {
          if (!open.has(write.channel)) continue;
          histories.get(write.channel)?.writes.push(await reviveWrite(write, loaded));
        }
        for (const [channel, record] of loaded.channels) {
          const history = histories.get(channel);
          if (history === undefined || !open.delete(channel)) continue;
          history.seed = await reviveRecord(record, loaded);
        }
      }
      cursor = rows.length < ANCESTORS_AT_A_TIME ? undefined : rows[rows.length - 1]?.checkpoint_id;
    }
    for (const history of histories.values()) history.writes.reverse();
    return Object.fromEntries(histories);
  }

  abstract override deleteThread(threadId: string): Promise<void>;

  /** Waits if this saver does; else only sees to it that a failure, which `flush` reports, is not unhandled, too. */
  private async acknowledge(committed: Promise<void>): Promise<void> {
    if (this.waits) await committed;
    else committed.catch(() => undefined);
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
    return row === undefined ? undefined : toKnown(row);
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
      .map(toKnown)
      .some((known) => known.versions[channel] === version && known.channels.has(channel));
  }

  private async toTuple(
    loaded: LoadedCheckpoint,
    threadId: string,
    learner?: ThreadWriter,
  ): Promise<CheckpointTuple> {
    const { row, body } = loaded;
    const unfinished: Unfinished = [];
    const values: Record<string, unknown> = {};
    const lists: Array<{ value: StoredValue; elements: unknown[]; trees: unknown[] }> = [];
    const channels = new Map<string, StoredValue>();
    for (const [channel, record] of loaded.channels) {
      const value = fromRecord(record);
      const elementsOf = (list: number): unknown[] => {
        const trees = treesOf(record, list, loaded);
        const elements = revive(trees, unfinished) as unknown[];
        if (isWholeList(record)) lists.push({ value, elements, trees });
        return elements;
      };
      const holder = revive([recordTree(record, loaded.elements)], unfinished, elementsOf) as [unknown];
      await settle(unfinished.splice(0));
      setField(values, channel, holder[0]);
      channels.set(channel, value);
      if (record.c !== undefined) learner?.values.rememberContent(record.c);
    }
    for (const { value, elements, trees } of lists) {
      const [reference] = value.lists;
      if (reference === undefined || learner === undefined) continue;
      // A copy: reducers may change the array that they are given.
      value.live = { reference, elements: elements.slice(), trees };
      learner.book.remember(value.live);
    }
    learner?.values.rememberContent(row.shape);
    learner?.learn(row.checkpoint_ns, row.checkpoint_id, {
      versions: { ...body.channel_versions },
      channels,
    });
    const pendingWrites: CheckpointPendingWrite[] = [];
    for (const write of loaded.writes) pendingWrites.push(await reviveWrite(write, loaded));
    const at = (id: string): RunnableConfig => ({
      configurable: { thread_id: threadId, checkpoint_ns: row.checkpoint_ns, checkpoint_id: id },
    });
    const metadata = revive(JSON.parse(row.metadata)) as CheckpointMetadata<{ run_id?: string }>;
    if (row.run_id !== null) metadata.run_id ??= row.run_id;
    const checkpoint: Checkpoint = { ...body, id: row.checkpoint_id, channel_values: values };
    if (checkpoint.v < 4 && row.parent_id !== null)
      await this.migratePendingSends(checkpoint, row.parent_id, loaded);
    return {
      config: at(row.checkpoint_id),
      checkpoint,
      metadata,
      ...(row.parent_id === null ? {} : { parentConfig: at(row.parent_id) }),
      pendingWrites,
    };
  }

  /** Before version 4 what was sent to nodes stood in the parent's writes. */
  private async migratePendingSends(
    checkpoint: Checkpoint,
    parentId: string,
    { row }: LoadedCheckpoint,
  ): Promise<void> {
    const parent = await this.parts.reader.read({
      threadId: row.thread_id,
      checkpointNs: row.checkpoint_ns,
      checkpointId: parentId,
    });
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

/** What a row says of a checkpoint, without the live elements of its lists. */
const toKnown = ({ body, channels, shape }: References): KnownCheckpoint => {
  const records = Object.entries(JSON.parse(channels) as Record<string, ValueRecord>);
  const versions = parseBody(body, JSON.parse(shape)).channel_versions;
  return { versions, channels: new Map(records.map(([channel, record]) => [channel, fromRecord(record)])) };
};

const reviveWrite = async (write: LoadedWrite, loaded: LoadedCheckpoint): Promise<CheckpointPendingWrite> => [
  write.taskId,
  write.channel,
  await reviveRecord(write.record, loaded),
];

const reviveRecord = async (record: ValueRecord, loaded: LoadedCheckpoint): Promise<unknown> => {
  const unfinished: Unfinished = [];
  const elementsOf = (list: number): unknown[] =>
    revive(treesOf(record, list, loaded), unfinished) as unknown[];
  const holder = revive([recordTree(record, loaded.elements)], unfinished, elementsOf) as [unknown];
  await settle(unfinished);
  return holder[0];
};

const treesOf = (record: ValueRecord, list: number, { elements }: LoadedCheckpoint): unknown[] => {
  const segments = toSegments(record.l?.[list] ?? []);
  const [first] = segments;
  if (first !== undefined && segments.length === 1) return elements.trees(first.list, first.from, first.to);
  return segments.flatMap((segment) => elements.trees(segment.list, segment.from, segment.to));
};

const pickChannels = (channels: string, wanted: ReadonlySet<string>): string => {
  const records = Object.entries(JSON.parse(channels) as Record<string, ValueRecord>);
  return JSON.stringify(Object.fromEntries(records.filter(([channel]) => wanted.has(channel))));
};

const byTaskAndIndex = (one: LoadedWrite, other: LoadedWrite): number =>
  one.taskId === other.taskId ? one.index - other.index : one.taskId < other.taskId ? -1 : 1;

const configurable = (config: RunnableConfig): Record<string, unknown> => config.configurable ?? {};

const placeOf = (config: RunnableConfig): Place | undefined => {
  const { thread_id: threadId, checkpoint_ns, checkpoint_id, thread_ts } = configurable(config);
  if (typeof threadId !== "string" || threadId === "") return undefined;
  const id = checkpoint_id || thread_ts;
  return {
    threadId,
    key: threadKey(threadId),
    checkpointNs: typeof checkpoint_ns === "string" ? checkpoint_ns : "",
    checkpointId: typeof id === "string" ? id : undefined,
  };
};

/** A client may ask for anything; what can't be there is not looked for. */
const isReadable = ({ checkpointNs, checkpointId }: Place): boolean =>
  !checkpointNs.includes("\u0000") && (checkpointId === undefined || isUuid(checkpointId));

const requirePlace = (config: RunnableConfig): Place => {
  const place = placeOf(config);
  if (place === undefined)
    throw new Error("A checkpoint can't be stored without a thread_id in config.configurable.");
  requireSeparable("checkpoint namespace", place.checkpointNs);
  return place;
};

const requireSeparable = (name: string, text: string): void => {
  if (SEPARATORS.some((separator) => text.includes(separator))) {
    throw new Error(`A ${name} can't hold control characters.`);
  }
};

const requireUuid = (checkpointId: string): void => {
  if (!isUuid(checkpointId)) throw new Error(`The checkpoint id '${checkpointId}' is not a UUID.`);
};
