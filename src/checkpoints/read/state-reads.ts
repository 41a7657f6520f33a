import type { WhenLarge } from "../../lib/large-answers.ts";
import type { Database } from "../../database/database.ts";
import { isPassing } from "../../database/passing-faults.ts";
import { isUuid } from "../../lib/ids.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { Logger } from "../../lib/logger.ts";
import { toWireJson, toWireValue } from "../../values/wire-json.ts";
import { TYPE } from "../../values/properties.ts";
import type { CheckpointReader, LoadedCheckpoint, UnreadableRow } from "./checkpoint-reader.ts";
import { readHeadRows, readRowsOf, type CheckpointRow } from "./row-statements.ts";
import { revive } from "../../values/reviving.ts";
import { toSegments } from "../lists/segments.ts";
import { threadKey } from "../rows/thread-key.ts";
import type { CheckpointStorage, HistoryOptions, StoredCheckpoint } from "../types.ts";
import { isWholeList, listTrees, recordTree, type ValueRecord } from "../rows/stored-value.ts";

export interface StateReadsParts {
  database: Database;
  reader: CheckpointReader;
  logger: Logger;
}

export type StateReads = Pick<CheckpointStorage, "readHead" | "readAt" | "readHistory" | "readHeads">;

/** Rows are read until they are so large, and no more at a time than these. */
const PAGE_BYTES = 1024 * 1024;
const PAGE_ROWS = 100;

/**
 * Reads for the state API: values come as the JSON that is sent. An element of a list is turned into it once per
 * process, however many states of a history hold it. Several states come one by one, each made when it is asked for,
 * so that what is in memory does not grow with their number; and each is read for itself: one that can't be read is
 * logged, and fails none of the others.
 */
export const createStateReads = ({ database, reader, logger }: StateReadsParts): StateReads => {
  const read = async (
    threadId: string,
    checkpointNs: string,
    checkpointId: string | undefined,
    whenLarge?: WhenLarge,
  ): Promise<StoredCheckpoint | undefined> => {
    if (checkpointNs.includes("\u0000") || (checkpointId !== undefined && !isUuid(checkpointId)))
      return undefined;
    const loaded = await reader.read(
      { threadId: threadKey(threadId), checkpointNs, checkpointId },
      whenLarge,
    );
    return loaded === undefined ? undefined : toStored(threadId, loaded);
  };

  /**
   * The state of a row. Between the statements of a read a prune or a rollback may free what the first one found: then
   * `readAfresh` finds what is there now, or nothing. Of what can't be read then either nothing is left but its row.
   */
  const storedOf = async (
    threadId: string,
    loaded: LoadedCheckpoint | UnreadableRow,
    readAfresh: () => Promise<StoredCheckpoint | undefined>,
  ): Promise<StoredCheckpoint | undefined> => {
    try {
      if ("error" in loaded) throw loaded.error;
      return toStored(threadId, loaded);
    } catch {
      try {
        return await readAfresh();
      } catch (error) {
        if (isPassing(error)) throw error;
        const { thread_id, checkpoint_id } = loaded.row;
        logger.error({ err: error, thread_id, checkpoint_id }, "a stored state can't be read");
        return withoutValues(threadId, loaded.row);
      }
    }
  };

  return {
    readHead: (threadId, checkpointNs = "", whenLarge) => read(threadId, checkpointNs, undefined, whenLarge),
    readAt: read,

    async *readHistory(threadId, checkpointNs, options: HistoryOptions) {
      const { limit, beforeCheckpointId, checkpointId, metadataFilter = {}, whenLarge } = options;
      if (checkpointNs.includes("\u0000")) return;
      for (const id of [beforeCheckpointId, checkpointId]) if (id !== undefined && !isUuid(id)) return;
      const { run_id: runId, ...metadata } = metadataFilter;
      if (runId !== undefined && !(typeof runId === "string" && isUuid(runId))) return;
      const filter = { threadId: threadKey(threadId), checkpointNs, checkpointId, runId, metadata };
      let cursor = beforeCheckpointId;
      for (let left = limit; left > 0;) {
        const pageRows = Math.min(left, PAGE_ROWS);
        const page = { ...filter, beforeCheckpointId: cursor, limit: pageRows };
        const { rows, isEnd } = await readRowsOf(database, page, PAGE_BYTES);
        for await (const loaded of reader.load(rows, { whenLarge })) {
          const id = loaded.row.checkpoint_id;
          const stored = await storedOf(threadId, loaded, () => read(threadId, checkpointNs, id));
          if (stored !== undefined) yield stored;
        }
        if (isEnd && rows.length < pageRows) return;
        left -= rows.length;
        cursor = rows.at(-1)?.checkpoint_id;
      }
    },

    async *readHeads(threadIds, { channels, remember = true, whenLarge } = {}) {
      const ids = new Map(threadIds.map((threadId) => [threadKey(threadId), threadId]));
      let keys = [...ids.keys()];
      while (keys.length > 0) {
        const { rows, done } = await readHeadRows(database, keys, PAGE_BYTES);
        const load = { only: channels, withoutWrites: true, remember, whenLarge };
        for await (const loaded of reader.load(rows, load)) {
          const threadId = ids.get(loaded.row.thread_id) ?? loaded.row.thread_id;
          const stored = await storedOf(threadId, loaded, () => read(threadId, "", undefined));
          if (stored !== undefined && stored.createdAt !== null) yield stored;
        }
        keys = keys.slice(done);
      }
    },
  };
};

/** What the columns of a row say of a state that can't be read. */
const withoutValues = (threadId: string, row: CheckpointRow): StoredCheckpoint => ({
  threadId,
  checkpointNs: row.checkpoint_ns,
  checkpointId: row.checkpoint_id,
  parentCheckpointId: row.parent_id,
  runId: row.run_id,
  createdAt: null,
  metadata: row.run_id === null ? {} : { run_id: row.run_id },
  channelVersions: {},
  versionsSeen: {},
  values: new Map(),
  pendingWrites: [],
});

const toStored = (threadId: string, loaded: LoadedCheckpoint): StoredCheckpoint => {
  const { row, body, channels, writes } = loaded;
  const metadata = toWireValue(revive(JSON.parse(row.metadata))) as JsonObject;
  if (row.run_id !== null) metadata.run_id ??= row.run_id;
  return {
    threadId,
    checkpointNs: row.checkpoint_ns,
    checkpointId: row.checkpoint_id,
    parentCheckpointId: row.parent_id,
    runId: row.run_id,
    createdAt: body.ts,
    metadata,
    channelVersions: body.channel_versions,
    versionsSeen: body.versions_seen,
    values: new Map(
      channels
        .filter(([, record]) => !isUndefined(record))
        .map(([channel, record]) => [channel, wireText(record, loaded)]),
    ),
    pendingWrites: writes.map(({ taskId, channel, record }) => ({
      taskId,
      channel,
      value: isUndefined(record) ? undefined : wireText(record, loaded),
    })),
  };
};

/** A channel that was given `undefined` is empty when it is read: LangGraph can't tell the two apart. */
const isUndefined = ({ v }: ValueRecord): boolean =>
  typeof v === "object" && v !== null && TYPE in v && v[TYPE] === "undefined";

const wireText = (record: ValueRecord, loaded: LoadedCheckpoint): string => {
  if (isWholeList(record) && record.w === undefined) {
    const texts: string[] = [];
    for (const { list, from, to } of toSegments(record.l?.[0] ?? []))
      loaded.elements.addWireTexts(list, from, to, texts);
    return `[${texts.join(",")}]`;
  }
  const elementsOf = (list: number): unknown[] =>
    toSegments(record.l?.[list] ?? []).flatMap(
      ({ list, from, to }) => revive(listTrees(record, loaded.elements.trees(list, from, to))) as unknown[],
    );
  return toWireJson(revive(recordTree(record, loaded.elements), undefined, elementsOf));
};
