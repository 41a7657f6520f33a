import { markedOfGraph } from "../../platform/lib/contents.ts";
import { isPassing } from "../../platform/database/passing-faults.ts";
import type { Database } from "../../platform/database/database.ts";
import { isUuid } from "../../platform/lib/ids.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { threadKey } from "./thread-key.ts";
import type { CheckpointStorage, ReadOptions, StoredCheckpoint } from "./types.ts";
import type { ValueClasses } from "../values/classes.ts";
import {
  toStored,
  withoutValues,
  type CheckpointReader,
  type LoadedCheckpoint,
  type UnreadableRow,
} from "./reader.ts";
import { readHeadRows, readRows } from "./rows.ts";
import { againIfFreed } from "./texts.ts";

type StateReads = Pick<CheckpointStorage, "readHead" | "readAt" | "readHistory" | "readHeads">;

const PAGE_ROWS = 100;

/**
 * Reads several states one by one on demand, so memory does not grow with their number. An unreadable state is logged
 * and fails no other state.
 */
export const createStateReads = (
  database: Database,
  reader: CheckpointReader,
  logger: Logger,
): StateReads => {
  const readAt = async (
    threadId: string,
    checkpointNs: string,
    checkpointId: string | undefined,
    { classes }: ReadOptions = {},
  ): Promise<StoredCheckpoint | undefined> => {
    if (checkpointNs.includes("\u0000") || (checkpointId !== undefined && !isUuid(checkpointId)))
      return undefined;
    const address = { threadId: threadKey(threadId), checkpointNs, checkpointId };
    return await againIfFreed(async () => {
      const loaded = await reader.read(address);
      return loaded === undefined ? undefined : await toStored(threadId, loaded, reader, classes);
    });
  };

  /**
   * A prune or a rollback may free parts of the row between the statements; then `readAgain` reads the present state.
   * If this also fails, only the row's columns are returned.
   */
  const storedOf = async (
    threadId: string,
    loaded: LoadedCheckpoint | UnreadableRow,
    readAgain: () => Promise<StoredCheckpoint | undefined>,
    classes?: ValueClasses,
  ): Promise<StoredCheckpoint | undefined> => {
    try {
      if ("error" in loaded) throw loaded.error;
      return await toStored(threadId, loaded, reader, classes);
    } catch {
      try {
        return await readAgain();
      } catch (error) {
        if (isPassing(error)) throw error;
        const { thread_id, checkpoint_id } = loaded.row;
        logger.error({ err: markedOfGraph(error), thread_id, checkpoint_id }, "a stored state can't be read");
        return withoutValues(threadId, loaded.row);
      }
    }
  };

  return {
    readHead: (threadId, checkpointNs = "", options) => readAt(threadId, checkpointNs, undefined, options),
    readAt,

    async *readHistory(threadId, checkpointNs, options) {
      const { limit, beforeCheckpointId, checkpointId, metadataFilter = {}, classes } = options;
      if (checkpointNs.includes("\u0000")) return;
      for (const id of [beforeCheckpointId, checkpointId]) if (id !== undefined && !isUuid(id)) return;
      const { run_id: runId, ...metadata } = metadataFilter;
      if (runId !== undefined && !(typeof runId === "string" && isUuid(runId))) return;
      const key = threadKey(threadId);
      const filter = { threadId: key, checkpointNs, checkpointId, beforeCheckpointId, runId, metadata };
      let beforeSeq: string | undefined;
      for (let left = limit; left > 0;) {
        const pageRows = Math.min(left, PAGE_ROWS);
        const page = { ...filter, beforeSeq, limit: pageRows };
        const { rows, isEnd } = await readRows(database, page);
        for await (const loaded of reader.load(rows)) {
          const id = loaded.row.checkpoint_id;
          const readAgain = () => readAt(threadId, checkpointNs, id, { classes });
          const stored = await storedOf(threadId, loaded, readAgain, classes);
          if (stored !== undefined) yield stored;
        }
        if (isEnd) return;
        left -= rows.length;
        beforeSeq = rows.at(-1)?.seq;
      }
    },

    async *readHeads(threadIds, { channels } = {}) {
      const ids = new Map(threadIds.map((threadId) => [threadKey(threadId), threadId]));
      let keys = [...ids.keys()];
      while (keys.length > 0) {
        const { rows, done } = await readHeadRows(database, keys);
        for await (const loaded of reader.load(rows, channels)) {
          const threadId = ids.get(loaded.row.thread_id) ?? loaded.row.thread_id;
          const stored = await storedOf(threadId, loaded, () => readAt(threadId, "", undefined));
          if (stored !== undefined && stored.createdAt !== null) yield stored;
        }
        keys = keys.slice(done);
      }
    },
  };
};
