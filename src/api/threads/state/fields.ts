import type { RunnableConfig } from "@langchain/core/runnables";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import type { CheckpointStorage, StoredCheckpoint } from "../../../state/checkpoints/types.ts";
import { isPassing } from "../../../platform/database/passing-faults.ts";
import { finishedTasks, withErrors } from "../../../graphs/pending-writes.ts";
import type { RunnableGraph } from "../../../graphs/runnable-graph.ts";
import { StateStorageError } from "../../../platform/domain/errors.ts";
import {
  configOf,
  isQuiet,
  quietFields,
  snapshotOfTexts,
  TASK_NOTES,
  unreadableFields,
  writeAllValues,
  writePlannedValues,
} from "./snapshot.ts";
import { snapshotFields, type Snapshot, type StateFields } from "./state-json.ts";
import type { ThreadGraphs, ThreadOfGraph } from "./thread-graphs.ts";
import { byGraphCode } from "./graph-code.ts";

/** The task id of a command's updates and destinations, and of resume values. */
const NO_TASK = "00000000-0000-0000-0000-000000000000";
/** Not a channel: only the interrupted node reads it. */
const RESUME = "__resume__";

/** Whether tasks of an unfinished step have written. */
const isHalfDone = ({ pendingWrites }: StoredCheckpoint): boolean =>
  pendingWrites.some(({ channel }) => !TASK_NOTES.has(channel));

/** Reads a state in one of the three ways of state.ts. */
export const createStateFields = (
  checkpoints: Pick<CheckpointStorage, "saver" | "saverForRead">,
  { planFor, resolverOf }: ThreadGraphs,
) => {
  const readByGraph = async (
    thread: ThreadOfGraph,
    config: RunnableConfig,
    subgraphs: boolean,
    finished?: ReadonlySet<string>,
  ): Promise<StateFields> => {
    const resolve = await resolverOf(thread);
    const through = async (checkpointer: BaseCheckpointSaver): Promise<StateFields> => {
      const graph = await resolve(checkpointer);
      return snapshotFields((await graph.getState(config, { subgraphs })) as Snapshot, finished);
    };
    try {
      return await through(checkpoints.saver);
    } catch (error) {
      if (error instanceof StateStorageError || isPassing(error)) throw error;
      // A reducer may refuse the writes of a failed run. The state without them is the last good one.
      return await byGraphCode(`The graph '${thread.graphId ?? ""}' could not read its state.`, async () => {
        const graph = await resolve();
        return await through(checkpoints.saverForRead((tuple, read) => withErrors(graph, tuple, read)));
      });
    }
  };

  const fieldsOf = async (
    thread: ThreadOfGraph,
    graph: RunnableGraph | undefined,
    stored: StoredCheckpoint,
    { isHead, subgraphs }: { isHead: boolean; subgraphs: boolean },
  ): Promise<StateFields> => {
    if (stored.createdAt === null) return unreadableFields(stored);
    if (graph === undefined) return quietFields(stored, writeAllValues(stored));
    const plan = stored.checkpointNs === "" ? planFor(graph) : undefined;
    const isUpdatedByCommand = stored.pendingWrites.some(
      ({ taskId, channel }) => taskId === NO_TASK && channel !== RESUME,
    );
    if (plan !== undefined && !isUpdatedByCommand) {
      if (isQuiet(stored, plan)) return quietFields(stored, writePlannedValues(stored, plan));
      if (!(isHead && isHalfDone(stored)) && !subgraphs) {
        const fields = await snapshotOfTexts(graph, stored, plan);
        if (fields !== undefined) return fields;
      }
    }
    const checkpointId = isHead ? undefined : stored.checkpointId;
    return await readByGraph(
      thread,
      configOf(thread.threadId, stored.checkpointNs, checkpointId),
      subgraphs,
      isHead ? finishedTasks(stored.pendingWrites) : undefined,
    );
  };

  const valuesOf = async (
    thread: ThreadOfGraph,
    graph: RunnableGraph | undefined,
    stored: StoredCheckpoint,
  ): Promise<string> => {
    if (graph === undefined) return writeAllValues(stored);
    const plan = planFor(graph);
    if (plan !== undefined) return writePlannedValues(stored, plan);
    return (await readByGraph(thread, configOf(thread.threadId, "", stored.checkpointId), false)).values;
  };

  return {
    /** `isHead`: the newest state, in which the writes of an unfinished step count. */
    fieldsOf,

    /** Without the writes of an unfinished step. */
    valuesOf,

    /** Of the newest state, with the writes of an unfinished step. */
    newestValuesOf: async (...state: Parameters<typeof valuesOf>): Promise<string> =>
      isHalfDone(state[2])
        ? (await fieldsOf(...state, { isHead: true, subgraphs: false })).values
        : await valuesOf(...state),
  };
};
