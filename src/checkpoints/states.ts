import type { Database } from "../database/database.ts";
import { isUuid } from "../lib/ids.ts";
import type { JsonObject } from "../lib/json.ts";
import type { Logger } from "../lib/logger.ts";
import { toWireJson, toWireValue } from "../lib/wire-json.ts";
import { TYPE } from "./fields.ts";
import type { CheckpointReader, LoadedCheckpoint, OnUnreadable } from "./reader.ts";
import { readHeadRows, readRows, type CheckpointRow } from "./reads.ts";
import { revive } from "./reviving.ts";
import { toSegments } from "./segments.ts";
import { threadKey } from "./thread-key.ts";
import type { CheckpointStorage, HistoryOptions, StoredCheckpoint } from "./types.ts";
import { isWholeList, listTrees, recordTree, type ValueRecord } from "./values.ts";

export interface StateReadsParts {
  database: Database;
  reader: CheckpointReader;
  logger: Logger;
}

export type StateReads = Pick<CheckpointStorage, "readHead" | "readAt" | "readHistory" | "readHeads">;

/**
 * Reads for the state API: values come as the JSON that is sent. An element of a list is turned into it once per
 * process, however many states of a history hold it. Of several states each is read for itself: one that can't be
 * read is logged, and fails none of the others.
 */
export const createStateReads = ({ database, reader, logger }: StateReadsParts): StateReads => {
  /** Between the statements of a read a prune or a rollback may free what the first one found: then it is read anew. */
  const afresh = async <Result>(read: (onUnreadable: OnUnreadable) => Promise<Result>): Promise<Result> => {
    let isWhole = true;
    const result = await read(() => (isWhole = false));
    if (isWhole) return result;
    return await read(({ thread_id, checkpoint_id }, error) => {
      logger.error({ err: error, thread_id, checkpoint_id }, "a stored state can't be read");
    });
  };

  const read = async (
    threadId: string,
    checkpointNs: string,
    checkpointId: string | undefined,
  ): Promise<StoredCheckpoint | undefined> => {
    if (checkpointNs.includes("\u0000") || (checkpointId !== undefined && !isUuid(checkpointId)))
      return undefined;
    const loaded = await reader.read({ threadId: threadKey(threadId), checkpointNs, checkpointId });
    return loaded === undefined ? undefined : toStored(threadId, loaded);
  };

  return {
    readHead: (threadId, checkpointNs = "") => read(threadId, checkpointNs, undefined),
    readAt: (threadId, checkpointNs, checkpointId) => read(threadId, checkpointNs, checkpointId),

    readHistory: (threadId, checkpointNs, options: HistoryOptions) =>
      afresh(async (onUnreadable) => {
        const { limit, beforeCheckpointId, checkpointId, metadataFilter = {} } = options;
        if (checkpointNs.includes("\u0000")) return [];
        for (const id of [beforeCheckpointId, checkpointId]) if (id !== undefined && !isUuid(id)) return [];
        const { run_id: runId, ...metadata } = metadataFilter;
        if (runId !== undefined && !(typeof runId === "string" && isUuid(runId))) return [];
        const rows = await readRows(database, {
          threadId: threadKey(threadId),
          checkpointNs,
          checkpointId,
          beforeCheckpointId,
          runId,
          metadata,
          limit,
        });
        const unreadable = new Map<CheckpointRow, StoredCheckpoint>();
        const note: OnUnreadable = (row, error) => {
          unreadable.set(row, withoutValues(threadId, row));
          onUnreadable(row, error);
        };
        const states = new Map<CheckpointRow, StoredCheckpoint>();
        for (const loaded of await reader.load(rows, undefined, note)) {
          const stored = tryToStored(threadId, loaded, note);
          if (stored !== undefined) states.set(loaded.row, stored);
        }
        return rows.flatMap((row) => states.get(row) ?? unreadable.get(row) ?? []);
      }),

    readHeads: (threadIds) =>
      afresh(async (onUnreadable) => {
        const ids = new Map(threadIds.map((threadId) => [threadKey(threadId), threadId]));
        const heads = new Map<string, StoredCheckpoint>();
        const rows = await readHeadRows(database, [...ids.keys()]);
        for (const loaded of await reader.load(rows, undefined, onUnreadable)) {
          const threadId = ids.get(loaded.row.thread_id) ?? loaded.row.thread_id;
          const stored = tryToStored(threadId, loaded, onUnreadable);
          if (stored !== undefined) heads.set(threadId, stored);
        }
        return heads;
      }),
  };
};

const tryToStored = (
  threadId: string,
  loaded: LoadedCheckpoint,
  onUnreadable: OnUnreadable,
): StoredCheckpoint | undefined => {
  try {
    return toStored(threadId, loaded);
  } catch (error) {
    onUnreadable(loaded.row, error);
    return undefined;
  }
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
      loaded.elements.addWires(list, from, to, texts);
    return `[${texts.join(",")}]`;
  }
  const elementsOf = (list: number): unknown[] =>
    toSegments(record.l?.[list] ?? []).flatMap(
      ({ list, from, to }) => revive(listTrees(record, loaded.elements.trees(list, from, to))) as unknown[],
    );
  return toWireJson(revive(recordTree(record, loaded.elements), undefined, elementsOf));
};
