import type { DeltaChannelHistory } from "@langchain/langgraph-checkpoint";
import type { Database } from "../../../platform/database/database.ts";
import { isUuid } from "../../../platform/lib/ids.ts";
import type { ValueClasses } from "../../values/classes.ts";
import type { ConfiguredCheckpoint } from "./checkpoint-config.ts";
import type { CheckpointReader, LoadedWrite } from "../read/checkpoint-reader.ts";
import { readAncestors } from "../read/row-statements.ts";
import { reviveRecord, reviveWrite } from "../read/checkpoint-tuples.ts";

type Histories = Record<string, DeltaChannelHistory>;

const ANCESTORS_AT_A_TIME = 200;

export const noHistory = (channels: readonly string[]): Histories =>
  Object.fromEntries(channels.map((channel) => [channel, { writes: [] }]));

/**
 * Oldest first, from the nearest ancestor with a value. Reads 200 ancestors at a time. Without a checkpoint there is no
 * history: a subgraph may begin anew although its namespace has checkpoints of a later step.
 */
export const readDeltaHistory = async (
  { database, reader }: { database: Database; reader: CheckpointReader },
  { key, checkpointNs, checkpointId }: ConfiguredCheckpoint,
  channels: readonly string[],
  classes: ValueClasses,
): Promise<Histories> => {
  const histories = new Map(Object.entries(noHistory(channels)));
  const open = new Set(channels);
  let cursor = checkpointId;
  while (cursor !== undefined && isUuid(cursor) && open.size > 0) {
    const rows = await readAncestors(database, key, checkpointNs, cursor, ANCESTORS_AT_A_TIME);
    for await (const loaded of reader.load(rows, { only: new Set(open) })) {
      if ("error" in loaded) throw loaded.error;
      for (const write of [...loaded.writes].sort(byTaskAndIndex).reverse()) {
        if (!open.has(write.channel)) continue;
        histories.get(write.channel)?.writes.push(await reviveWrite(write, loaded, classes));
      }
      for (const [channel, record] of loaded.channels) {
        const history = histories.get(channel);
        if (history === undefined || !open.delete(channel)) continue;
        history.seed = await reviveRecord(record, loaded, classes);
      }
    }
    cursor = rows.length < ANCESTORS_AT_A_TIME ? undefined : rows[rows.length - 1]?.checkpoint_id;
  }
  for (const history of histories.values()) history.writes.reverse();
  return Object.fromEntries(histories);
};

const byTaskAndIndex = (one: LoadedWrite, other: LoadedWrite): number =>
  one.taskId === other.taskId ? one.index - other.index : one.taskId < other.taskId ? -1 : 1;
