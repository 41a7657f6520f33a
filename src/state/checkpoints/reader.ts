import type { RunnableConfig } from "@langchain/core/runnables";
import {
  maxChannelVersion,
  TASKS,
  type Checkpoint,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
} from "@langchain/langgraph-checkpoint";
import type { Queryable } from "../../platform/database/database.ts";
import { isPassing } from "../../platform/database/passing-faults.ts";
import { ObjectStoreError, StateStorageError } from "../../platform/domain/errors.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import { setProperty } from "../../platform/lib/properties.ts";
import type { ValueClasses } from "../values/classes.ts";
import { referenceTo } from "../values/large-strings.ts";
import { TYPE } from "../values/type-key.ts";
import { revive, settle, type Unfinished } from "../values/reviving.ts";
import { toWireValue } from "../values/wire-json.ts";
import { Contents, readContents, type ContentCache, type WantedContent } from "./content-reader.ts";
import type { Leaf } from "./lists.ts";
import type { KnownNames } from "./names.ts";
import { parseRecord, type CheckpointBody } from "./record.ts";
import { openRow, readRow, type CheckpointAddress, type CheckpointRow, type ClosedRow } from "./rows.ts";
import type { StoredCheckpoint } from "./types.ts";
import type { StoredValue } from "./values.ts";

interface ParsedRow {
  row: CheckpointRow;
  body: CheckpointBody;
  /** The text of each channel, as in the row. */
  channels: ReadonlyMap<string, string>;
}

/** A row with all contents that it needs. */
export interface LoadedCheckpoint extends ParsedRow {
  contents: Contents;
}

/** An unreadable row must not fail other rows. */
export interface UnreadableRow {
  row: ClosedRow;
  error: unknown;
}

/** How many rows ahead contents are read together. */
const ROWS_AHEAD = 100;

export class CheckpointReader {
  constructor(
    readonly database: Queryable,
    private readonly cache: ContentCache,
    private readonly names: KnownNames,
  ) {}

  async read(address: CheckpointAddress): Promise<LoadedCheckpoint | undefined> {
    const found = await readRow(this.database, address);
    return found === undefined ? undefined : await this.complete([this.texts(found)]);
  }

  /** One by one, when the caller continues, with few statements for all. `only`: names of channels. */
  async *load(
    closed: readonly ClosedRow[],
    only?: ReadonlySet<string>,
  ): AsyncGenerator<LoadedCheckpoint | UnreadableRow, void, undefined> {
    const rows = closed.map((row) => {
      try {
        return this.texts(row, only);
      } catch (error) {
        return unreadable(row, error);
      }
    });
    for (const [index, row] of rows.entries()) {
      if ("error" in row) {
        yield row;
        continue;
      }
      const ahead = rows
        .slice(index + 1, index + ROWS_AHEAD)
        .filter((each): each is ParsedRow => !("error" in each));
      yield await this.complete([row, ...ahead]).catch((error: unknown) => unreadable(closed[index]!, error));
    }
  }

  /** The texts of channels and writes, without what they refer to. `only`: names of channels. */
  texts(closed: ClosedRow, only?: ReadonlySet<string>): ParsedRow {
    const row = openRow(this.database.encryption, closed);
    const { body, channels } = parseRecord(row.record, this.names.parse(row.names));
    if (only === undefined) return { row, body, channels };
    for (const channel of channels.keys()) if (!only.has(channel)) channels.delete(channel);
    return { row: { ...row, writes: row.writes.filter(({ channel }) => only.has(channel)) }, body, channels };
  }

  /**
   * Reads what the first row needs. What the others need is read with it as far as it fits, and waits in the cache.
   * @throws StateStorageError if a content is missing, because its thread was pruned meanwhile
   */
  private async complete([row, ...ahead]: readonly [ParsedRow, ...ParsedRow[]]): Promise<LoadedCheckpoint> {
    const contents = new Contents(this.cache);
    for (;;) {
      const missing = missingOf(row, contents);
      const [first] = missing;
      if (first === undefined) return { ...row, contents };
      const seen = new Set(missing.map(({ hash }) => hash));
      const others = ahead.flatMap((next) => missingOf(next, contents, seen));
      const read = (wanted: readonly WantedContent[]) => readContents(this.database, wanted);
      // A damaged content of another row must not fail this one.
      const together = read([...missing, ...others]);
      const found = await (others.length === 0 ? together : together.catch(() => read(missing)));
      for (const { hash, text } of found) contents.add(hash, text);
      if (!found.some(({ hash }) => hash === first.hash))
        throw new StateStorageError(`The stored content ${first.hash} is missing.`);
    }
  }
}

const missingOf = ({ row, channels }: ParsedRow, contents: Contents, seen?: Set<string>): WantedContent[] =>
  contents
    .missing([...channels.values(), ...row.writes.map(({ text }) => text)], seen)
    .map((hash) => ({ threadId: row.thread_id, hash }));

/** A passing fault ends the whole read. */
const unreadable = (row: ClosedRow, error: unknown): UnreadableRow => {
  if (isPassing(error) || error instanceof ObjectStoreError) throw error;
  return { row, error };
};

export const reviveText = async (text: string, contents: Contents, classes: ValueClasses): Promise<unknown> =>
  (await reviveValue(text, contents, classes)).value;

/** `leaves`: only of a list. */
const reviveValue = async (
  text: string,
  contents: Contents,
  classes: ValueClasses,
): Promise<{ value: unknown; leaves: Leaf[] | undefined }> => {
  const unfinished: Unfinished = [];
  const stored = contents.leavesOf(text);
  if (stored === undefined) {
    const holder = revive([contents.tree(text)], unfinished, classes) as [unknown];
    await settle(unfinished);
    return { value: holder[0], leaves: undefined };
  }
  const trees = stored.map((leaf) => contents.trees(leaf));
  const value = revive(trees.flat(1), unfinished, classes) as unknown[];
  await settle(unfinished);
  let start = 0;
  const leaves = stored.map(({ hash }, index): Leaf => {
    const itsTrees = trees[index]!;
    const elements = value.slice(start, start + itsTrees.length);
    start += elements.length;
    return { hash, reference: referenceTo(hash), elements, trees: itsTrees };
  });
  return { value, leaves };
};

/** `stored`: filled for a writer, so that it stores of the next checkpoint what is new. */
export const reviveTuple = async (
  { row, body, channels, contents }: LoadedCheckpoint,
  threadId: string,
  classes: ValueClasses,
  stored?: Map<string, StoredValue>,
): Promise<CheckpointTuple> => {
  const values: Record<string, unknown> = {};
  for (const [channel, text] of channels) {
    const { value, leaves } = await reviveValue(text, contents, classes);
    setProperty(values, channel, value);
    // A copy, because reducers may change the array.
    const list = leaves && { elements: (value as unknown[]).slice(), leaves, text: contents.listText(text) };
    stored?.set(channel, { text, list });
  }
  const pendingWrites: CheckpointPendingWrite[] = [];
  for (const { taskId, channel, text } of row.writes)
    pendingWrites.push([taskId, channel, await reviveText(text, contents, classes)]);
  const at = (id: string): RunnableConfig => ({
    configurable: { thread_id: threadId, checkpoint_ns: row.checkpoint_ns, checkpoint_id: id },
  });
  const metadata = revive(JSON.parse(row.metadata), undefined, classes) as CheckpointMetadata<{
    run_id?: string;
  }>;
  if (row.run_id !== null) metadata.run_id ??= row.run_id;
  const checkpoint: Checkpoint = { ...body, id: row.checkpoint_id, channel_values: values };
  return {
    config: at(row.checkpoint_id),
    checkpoint,
    metadata,
    ...(row.parent_id === null ? {} : { parentConfig: at(row.parent_id) }),
    pendingWrites,
  };
};

/** Before version 4, sends were stored in the parent's writes. */
export const migratePendingSends = async (
  checkpoint: Checkpoint,
  reader: CheckpointReader,
  { row }: LoadedCheckpoint,
  classes: ValueClasses,
): Promise<void> => {
  if (checkpoint.v >= 4 || row.parent_id === null) return;
  const address = { threadId: row.thread_id, checkpointNs: row.checkpoint_ns, checkpointId: row.parent_id };
  const parent = await reader.read(address);
  const sends: unknown[] = [];
  for (const { channel, text } of parent?.row.writes ?? [])
    if (channel === TASKS && parent !== undefined)
      sends.push(await reviveText(text, parent.contents, classes));
  const versions = Object.values(checkpoint.channel_versions);
  checkpoint.channel_values[TASKS] = sends;
  checkpoint.channel_versions[TASKS] = versions.length > 0 ? maxChannelVersion(...versions) : 1;
};

export const withoutValues = (
  threadId: string,
  row: Omit<ClosedRow, "own_writes" | "writes">,
): StoredCheckpoint => ({
  threadId,
  checkpointNs: row.checkpoint_ns,
  checkpointId: row.checkpoint_id,
  parentCheckpointId: row.parent_id,
  runId: row.run_id,
  createdAt: null,
  metadata: row.run_id === null ? {} : { run_id: row.run_id },
  values: new Map(),
  tuple: undefined,
  pendingWrites: [],
});

/** For clients; with `classes`, for a graph. */
export const toStored = async (
  threadId: string,
  loaded: LoadedCheckpoint,
  reader: CheckpointReader,
  classes: ValueClasses | undefined,
): Promise<StoredCheckpoint> => {
  const { row, body, channels, contents } = loaded;
  const metadata = toWireValue(revive(JSON.parse(row.metadata))) as JsonObject;
  if (row.run_id !== null) metadata.run_id ??= row.run_id;
  let tuple: CheckpointTuple | undefined;
  if (classes !== undefined) {
    tuple = await reviveTuple(loaded, threadId, classes);
    await migratePendingSends(tuple.checkpoint, reader, loaded, classes);
  }
  const wire = (text: string): string | undefined => (text === UNDEFINED ? undefined : contents.wire(text));
  return {
    ...withoutValues(threadId, row),
    createdAt: body.ts,
    metadata,
    // LangGraph can't distinguish `undefined` from an empty channel.
    values: new Map(
      (classes === undefined ? [...channels] : [])
        .filter(([, text]) => text !== UNDEFINED)
        .map(([channel, text]) => [channel, contents.wire(text)]),
    ),
    tuple,
    pendingWrites: row.writes.map(({ taskId, channel, text }) => ({ taskId, channel, value: wire(text) })),
  };
};

const UNDEFINED = JSON.stringify({ [TYPE]: "undefined" });
