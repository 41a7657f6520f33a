/**
 * Values of finished states are the stored texts, if the graph's channels keep values as they are: LangGraph would revive
 * every message only to write it as JSON again. All else is what the graph's `getState` says.
 */

import type { CheckpointTuple } from "@langchain/langgraph-checkpoint";
import { markedOfGraph } from "../../../platform/lib/contents.ts";
import type { CheckpointStorage, StoredCheckpoint } from "../../../state/checkpoints/types.ts";
import { isPassing } from "../../../platform/database/passing-faults.ts";
import type { Graphs } from "../../../graphs/graphs.ts";
import { checkpointNotFound, StateStorageError } from "../../../platform/domain/errors.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import type { TimeSlicer } from "../../../platform/lib/time-slicer.ts";
import type { Logger } from "../../../platform/lib/logger.ts";
import { finishedTasks, withErrors } from "../../../graphs/pending-writes.ts";
import { outputKeysOf, stateOf } from "../../../graphs/runnable-graph.ts";
import type { ThreadConfigurations } from "./configuration.ts";
import { byGraphCode } from "./graph-code.ts";
import type { StateOutcome } from "./repository.ts";
import {
  EMPTY_STATE,
  snapshotFields,
  storedFields,
  unreadableFields,
  writeAllValues,
  writeSelected,
  writeState,
  writeStoredValues,
  type Snapshot,
  type StateFields,
} from "./state-json.ts";
import {
  createThreadGraphs,
  storedChannelsOf,
  type GraphOfThread,
  type ThreadOfGraph,
} from "./thread-graphs.ts";

export interface StateOptions {
  checkpoint?: { checkpoint_ns?: string; checkpoint_id?: string; checkpoint_map?: JsonObject };
  subgraphs?: boolean;
  select?: readonly string[];
}

export interface HistoryOptions {
  limit: number;
  /** Only states older than this checkpoint. */
  before?: string;
  metadata?: JsonObject;
  checkpoint?: { checkpoint_ns?: string; checkpoint_id?: string };
  select?: readonly string[];
}

export interface StateReader {
  /** Throws `checkpointNotFound`. */
  read(thread: ThreadOfGraph, options: StateOptions): Promise<string>;
  /** The newest values; null for a thread that never ran, and for unreadable values, which are logged. */
  values(thread: ThreadOfGraph): Promise<string | null>;
  /** The values at the end of a run, even if later runs changed them. */
  valuesOfRun(thread: ThreadOfGraph, runId: string): Promise<ValuesOfRun>;
  /** Whether the thread waits after an update, and for which answers. */
  outcome(thread: ThreadOfGraph): Promise<StateOutcome>;
  /** The newest first, each made on demand. */
  history(thread: ThreadOfGraph, options: HistoryOptions): AsyncGenerator<string, void, undefined>;
  /**
   * The newest values in the order of the threads, all found with one visibility. Threads that never ran are missing,
   * and so are unreadable values, which are logged.
   */
  headValues(
    threads: readonly ThreadOfGraph[],
    options?: HeadValuesOptions,
  ): AsyncGenerator<[threadId: string, values: string], void, undefined>;
}

export interface ValuesOfRun {
  values: string | null;
  /** The values are the thread's newest, and its interrupts are the run's. */
  isHead: boolean;
  /**
   * Those of the values that LangGraph's `invoke` returns; none if the graph is not known. Undefined: the graph is a
   * function. Its values are what a finished run returned; an interrupted run has returned nothing.
   */
  outputKeys: readonly string[] | undefined;
}

export interface HeadValuesOptions {
  /** The only keys that matter; others may be missing. */
  keys?: ReadonlySet<string> | undefined;
}

const unread = (error: unknown, threadId: string) => ({ err: markedOfGraph(error), thread_id: threadId });

const outcomeOf = ({ next, tasks }: StateFields, finished: ReadonlySet<string>): StateOutcome => {
  const waiting = (JSON.parse(tasks) as { id: string; interrupts: unknown[] }[]).filter(
    ({ id, interrupts }) => interrupts.length > 0 && !finished.has(id),
  );
  return {
    // A task that asks its second question is missing in `next`.
    status: next !== "[]" || waiting.length > 0 ? "interrupted" : "idle",
    interrupts: JSON.stringify(Object.fromEntries(waiting.map(({ id, interrupts }) => [id, interrupts]))),
  };
};

export const createStateReader = (
  checkpoints: CheckpointStorage,
  graphs: Graphs,
  configurations: ThreadConfigurations,
  slicer: TimeSlicer,
  logger: Logger,
): StateReader => {
  const { graphOf, configurationsOf, areKeysChannels } = createThreadGraphs(graphs, configurations);

  /** In the newest state, interrupts of a step that has not ended count as open (docs/decisions/094). */
  const fieldsByGraph = async (
    { graph, classes }: GraphOfThread,
    stored: StoredCheckpoint,
    { isHead, subgraphs = false }: { isHead: boolean; subgraphs?: boolean },
  ): Promise<StateFields> => {
    const { threadId, checkpointNs, checkpointId } = stored;
    const finished = isHead ? finishedTasks(stored.pendingWrites) : undefined;
    const again = async (): Promise<CheckpointTuple> => {
      const found = await checkpoints.readAt(threadId, checkpointNs, checkpointId, { classes });
      if (found?.tuple === undefined) throw checkpointNotFound(checkpointId);
      return found.tuple;
    };
    const through = async (tuple: CheckpointTuple): Promise<StateFields> => {
      const snapshot = await stateOf(graph, tuple, { appliesWrites: isHead, subgraphs });
      return snapshotFields(snapshot as Snapshot, finished);
    };
    try {
      return await through(stored.tuple ?? (await again()));
    } catch (error) {
      if (error instanceof StateStorageError || isPassing(error)) throw error;
      // A reducer may refuse the writes of a failed run. The state without them is the last good one.
      return await byGraphCode(`The graph '${graph.name ?? ""}' could not read its state.`, async () =>
        through(await withErrors(graph, await again(), again)),
      );
    }
  };

  const fieldsOf = async (
    found: GraphOfThread | undefined,
    stored: StoredCheckpoint,
    options: { isHead: boolean; subgraphs?: boolean },
  ): Promise<StateFields> => {
    if (stored.createdAt === null) return unreadableFields(stored);
    if (found === undefined) return storedFields(stored, writeAllValues(stored));
    return await fieldsByGraph(found, stored, options);
  };

  /** Without the writes of an unfinished step. `stored` has values, and no tuple. */
  const valuesOf = async (found: GraphOfThread | undefined, stored: StoredCheckpoint): Promise<string> => {
    if (found === undefined) return writeAllValues(stored);
    const channels = storedChannelsOf(found.graph);
    if (channels !== undefined) return writeStoredValues(stored, channels);
    return (await fieldsByGraph(found, stored, { isHead: false })).values;
  };

  /** Of the newest state, with the writes of an unfinished step. */
  const newestValuesOf: typeof valuesOf = async (found, stored) =>
    found === undefined || finishedTasks(stored.pendingWrites).size === 0
      ? await valuesOf(found, stored)
      : (await fieldsByGraph(found, stored, { isHead: true })).values;

  /**
   * The thread names the graph of its last created run, which may not have started. An imported state may name an
   * unknown graph.
   */
  const asWritten = (thread: ThreadOfGraph, { metadata }: StoredCheckpoint): ThreadOfGraph => {
    const writer = metadata.graph_id;
    return typeof writer === "string" && writer !== thread.graphId && graphs.has(writer)
      ? { ...thread, graphId: writer }
      : thread;
  };

  const readValues = async (
    thread: ThreadOfGraph,
    find: () => Promise<StoredCheckpoint | undefined>,
    textOf: typeof valuesOf = valuesOf,
  ): Promise<string | null> => {
    try {
      const stored = await find();
      if (stored === undefined) return null;
      await slicer.next();
      const written = asWritten(thread, stored);
      return await textOf(await graphOf(written), stored);
    } catch (error) {
      if (isPassing(error)) throw error;
      logger.error(unread(error, thread.threadId), "the values of a thread can't be read");
      return null;
    }
  };

  return {
    async read(thread, { checkpoint = {}, subgraphs = false, select }) {
      const { checkpoint_ns: checkpointNs = "", checkpoint_id: checkpointId } = checkpoint;
      const found = await graphOf(thread);
      const how = { classes: found?.classes };
      const stored =
        checkpointId === undefined
          ? await checkpoints.readHead(thread.threadId, checkpointNs, how)
          : await checkpoints.readAt(thread.threadId, checkpointNs, checkpointId, how);
      await slicer.next();
      if (stored === undefined && checkpointId !== undefined) throw checkpointNotFound(checkpointId);
      const fields =
        stored === undefined
          ? EMPTY_STATE
          : await fieldsOf(found, stored, { isHead: checkpointId === undefined, subgraphs });
      return select === undefined ? writeState(fields) : writeSelected(fields, select);
    },

    async values(thread) {
      return await readValues(thread, () => checkpoints.readHead(thread.threadId));
    },

    async valuesOfRun(thread, runId) {
      const { threadId } = thread;
      let isHead = true;
      const find = async (): Promise<StoredCheckpoint | undefined> => {
        const head = await checkpoints.readHead(threadId);
        if (head === undefined || head.runId === runId) return head;
        const checkpointId = await checkpoints.latestOfRun(threadId, runId);
        if (checkpointId === undefined) return head; // The run wrote nothing, or the thread was pruned.
        const left = await checkpoints.readAt(threadId, "", checkpointId);
        isHead = left === undefined;
        return left ?? head;
      };
      let outputKeys: readonly string[] | undefined = [];
      const values = await readValues(thread, find, async (found, stored) => {
        if (found !== undefined) outputKeys = outputKeysOf(found.graph);
        // As the run returned them: with what had ended in a step that another task interrupted.
        return isHead ? await newestValuesOf(found, stored) : await valuesOf(found, stored);
      });
      return { values, isHead, outputKeys };
    },

    async outcome(thread) {
      const found = await graphOf(thread);
      const stored = await checkpoints.readHead(thread.threadId, "", { classes: found?.classes });
      if (stored === undefined) return { status: "idle", interrupts: "{}" };
      const fields = await fieldsOf(found, stored, { isHead: true });
      return outcomeOf(fields, finishedTasks(stored.pendingWrites));
    },

    async *history(thread, { limit, before, metadata, checkpoint = {}, select }) {
      const { checkpoint_ns: checkpointNs = "", checkpoint_id: checkpointId } = checkpoint;
      const found = await graphOf(thread);
      const page = checkpoints.readHistory(thread.threadId, checkpointNs, {
        limit,
        classes: found?.classes,
        ...(before === undefined ? {} : { beforeCheckpointId: before }),
        ...(checkpointId === undefined ? {} : { checkpointId }),
        ...(metadata === undefined ? {} : { metadataFilter: metadata }),
      });
      for await (const stored of page) {
        await slicer.next();
        const fields = await fieldsOf(found, stored, { isHead: false }).catch((error: unknown) => {
          if (isPassing(error)) throw error;
          const { threadId, checkpointId: checkpoint_id } = stored;
          logger.error({ ...unread(error, threadId), checkpoint_id }, "a state can't be read");
          return unreadableFields(stored);
        });
        yield select === undefined ? writeState(fields) : writeSelected(fields, select);
      }
    },

    async *headValues(threads, { keys } = {}) {
      const byId = new Map(threads.map((thread) => [thread.threadId, thread]));
      const known = await configurationsOf(threads);
      const channels = keys !== undefined && (await areKeysChannels(threads, known)) ? keys : undefined;
      const remember = keys === undefined;
      const heads = checkpoints.readHeads([...byId.keys()], { channels, remember });
      for await (const stored of heads) {
        const thread = byId.get(stored.threadId);
        if (thread === undefined) continue;
        let values: string;
        try {
          const written = asWritten(thread, stored);
          const found = await (written === thread ? graphOf(thread, known) : graphOf(written));
          values = await valuesOf(found, stored);
        } catch (error) {
          if (isPassing(error)) throw error;
          logger.error(unread(error, stored.threadId), "the values of a thread can't be read");
          continue;
        }
        yield [stored.threadId, values];
      }
    },
  };
};
