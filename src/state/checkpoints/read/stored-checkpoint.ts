import type { JsonObject } from "../../../platform/lib/json.ts";
import { TYPE } from "../../values/type-key.ts";
import { revive } from "../../values/reviving.ts";
import { toWireJson, toWireValue } from "../../values/wire-json.ts";
import { toSegments } from "../lists/segments.ts";
import { isWholeList, listTrees, recordTree, type ValueRecord } from "../rows/stored-value.ts";
import type { StoredCheckpoint } from "../types.ts";
import type { CheckpointTuple } from "@langchain/langgraph-checkpoint";
import type { ValueClasses } from "../../values/classes.ts";
import { migratePendingSends, reviveTuple } from "./checkpoint-tuples.ts";
import type { CheckpointReader, LoadedCheckpoint } from "./checkpoint-reader.ts";
import type { CheckpointRow } from "./row-statements.ts";

export const withoutValues = (threadId: string, row: CheckpointRow): StoredCheckpoint => ({
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

/** Throws StateStorageError if an element or a content is missing. */
export const toStored = async (
  threadId: string,
  loaded: LoadedCheckpoint,
  reader: CheckpointReader,
  classes: ValueClasses | undefined,
): Promise<StoredCheckpoint> => {
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
    values: new Map(
      (classes === undefined ? channels : [])
        .filter(([, record]) => !isUndefined(record))
        .map(([channel, record]) => [channel, wireText(record, loaded)]),
    ),
    tuple: classes && (await tupleOf(threadId, loaded, reader, classes)),
    pendingWrites: writes.map(({ taskId, channel, record }) => ({
      taskId,
      channel,
      value: isUndefined(record) ? undefined : wireText(record, loaded),
    })),
  };
};

const tupleOf = async (
  threadId: string,
  loaded: LoadedCheckpoint,
  reader: CheckpointReader,
  classes: ValueClasses,
): Promise<CheckpointTuple> => {
  const tuple = await reviveTuple(loaded, threadId, undefined, classes);
  await migratePendingSends(tuple.checkpoint, reader, loaded, classes);
  return tuple;
};

/** LangGraph can't distinguish `undefined` from an empty channel. */
const isUndefined = ({ v }: ValueRecord): boolean =>
  typeof v === "object" && v !== null && TYPE in v && v[TYPE] === "undefined";

/** Converts each element of a list once per process. */
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
