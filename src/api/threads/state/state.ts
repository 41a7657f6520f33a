/**
 * Values of finished states are the stored texts, if the graph's channels keep values as they are: LangGraph would revive
 * every message only to write it as JSON again. All else is what the graph's `getState` says.
 */

import type { CheckpointTuple } from "@langchain/langgraph-checkpoint";
import type { Visibility } from "../../../access/visibility.ts";
import { markedOfGraph } from "../../../platform/lib/contents.ts";
import type { CheckpointStorage, StoredCheckpoint } from "../../../state/checkpoints/types.ts";
import { isPassing } from "../../../platform/database/passing-faults.ts";
import type { Graphs } from "../../../graphs/graphs.ts";
import { checkpointNotFound, StateStorageError } from "../../../platform/domain/errors.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import type { Logger } from "../../../platform/lib/logger.ts";
import { finishedTasks, withErrors } from "../../../graphs/pending-writes.ts";
import { outputKeysOf, stateOf } from "../../../graphs/runnable-graph.ts";
import type { Database } from "../../../platform/database/database.ts";
import { createTimeSlicer, type TimeSlicer } from "../../../platform/lib/time-slicer.ts";
import type { ThreadRecordRow } from "../record.ts";
import type { StateOutcome } from "../repository.ts";
import {
  byGraphCode,
  createThreadGraphs,
  storedChannelsOf,
  type GraphOfThread,
  type ThreadOfGraph,
} from "./graphs.ts";
import {
  EMPTY_STATE,
  snapshotFields,
  storedFields,
  unreadableFields,
  writeAllValues,
  writeState,
  writeStoredValues,
  type StateFields,
} from "./state-json.ts";

/** Delays other requests no more than an ordinary request does. */
const SLICE_MS = 10;
/**
 * A large state takes 20 to 40 ms in one piece, and another request needs 3 ms (fifteen turns of the loop). With pauses
 * of one turn, a request took 1.9 s (p99) beside eight histories.
 */
const REST_SHARE = 0.3;
const REST_AT_LEAST_MS = 3;

export const createReadSlicer = (): TimeSlicer =>
  createTimeSlicer(SLICE_MS, (workedMs) => Math.max(REST_AT_LEAST_MS, workedMs * REST_SHARE));

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
  database: Database,
  checkpoints: CheckpointStorage,
  graphs: Graphs,
  slicer: TimeSlicer,
  logger: Logger,
) => {
  const { graphOf, configurationsFor } = createThreadGraphs(database, graphs);

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
      return snapshotFields(snapshot, finished);
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

  /** Without the writes of an unfinished step, unless `isHead`. `stored` has values, and no tuple. */
  const valuesOf = async (
    found: GraphOfThread | undefined,
    stored: StoredCheckpoint,
    isHead = false,
  ): Promise<string> => {
    if (found === undefined) return writeAllValues(stored);
    const appliesWrites = isHead && finishedTasks(stored.pendingWrites).size > 0;
    const channels = appliesWrites ? undefined : storedChannelsOf(found.graph);
    if (channels !== undefined) return writeStoredValues(stored, channels);
    return (await fieldsByGraph(found, stored, { isHead: appliesWrites })).values;
  };

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
    textOf: (found: GraphOfThread | undefined, stored: StoredCheckpoint) => Promise<string> = valuesOf,
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
    /** Throws `checkpointNotFound`. */
    async read(
      thread: ThreadOfGraph,
      { checkpoint = {}, subgraphs = false, select }: StateOptions,
    ): Promise<string> {
      const { checkpoint_ns: checkpointNs = "", checkpoint_id: checkpointId } = checkpoint;
      const found = await graphOf(thread);
      const how = { classes: found?.classes };
      const stored =
        checkpointId === undefined
          ? await checkpoints.readHead(thread.threadId, checkpointNs, how)
          : await checkpoints.readAt(thread.threadId, checkpointNs, checkpointId, how);
      await slicer.next();
      if (stored === undefined && checkpointId !== undefined) throw checkpointNotFound(checkpointId);
      const options = { isHead: checkpointId === undefined, subgraphs };
      return writeState(stored === undefined ? EMPTY_STATE : await fieldsOf(found, stored, options), select);
    },

    /** The newest values; null for a thread that never ran, and for unreadable values, which are logged. */
    values: async (thread: ThreadOfGraph): Promise<string | null> =>
      await readValues(thread, () => checkpoints.readHead(thread.threadId)),

    /** The values at the end of a run, even if later runs changed them. */
    async valuesOfRun(thread: ThreadOfGraph, runId: string): Promise<ValuesOfRun> {
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
        return await valuesOf(found, stored, isHead);
      });
      return { values, isHead, outputKeys };
    },

    /** Whether the thread waits after an update, and for which answers. */
    async outcome(thread: ThreadOfGraph): Promise<StateOutcome> {
      const found = await graphOf(thread);
      const stored = await checkpoints.readHead(thread.threadId, "", { classes: found?.classes });
      if (stored === undefined) return { status: "idle", interrupts: "{}" };
      const fields = await fieldsOf(found, stored, { isHead: true });
      return outcomeOf(fields, finishedTasks(stored.pendingWrites));
    },

    /** The newest first, each made on demand. */
    async *history(
      thread: ThreadOfGraph,
      { limit, before, metadata, checkpoint = {}, select }: HistoryOptions,
    ): AsyncGenerator<string, void, undefined> {
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
        yield writeState(fields, select);
      }
    },

    /**
     * The newest values in the order of the threads. Threads that never ran are missing, and so are unreadable values,
     * which are logged. `keys`: the only keys that matter; others may be missing.
     */
    async *headValues(
      visibility: Visibility<"threads">,
      rows: readonly Pick<ThreadRecordRow, "thread_id" | "graph_id" | "untouched">[],
      keys?: ReadonlySet<string>,
    ): AsyncGenerator<[threadId: string, values: string], void, undefined> {
      const threads = rows
        .filter(({ untouched }) => !untouched)
        .map(({ thread_id: threadId, graph_id: graphId }) => ({ visibility, threadId, graphId }));
      const byId = new Map<string, ThreadOfGraph>(threads.map((thread) => [thread.threadId, thread]));
      const known = await configurationsFor(threads);
      let channels = keys;
      if (keys !== undefined)
        for (const thread of threads) {
          const found = await graphOf(thread, known);
          // The keys of values must be channels of the same name.
          if (found !== undefined && storedChannelsOf(found.graph)?.isOne !== false) channels = undefined;
        }
      for await (const stored of checkpoints.readHeads([...byId.keys()], { channels })) {
        const thread = byId.get(stored.threadId);
        if (thread === undefined) continue;
        const written = asWritten(thread, stored);
        let values: string;
        try {
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

export type StateReader = ReturnType<typeof createStateReader>;
