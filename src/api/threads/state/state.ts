/**
 * Reads states from stored JSON texts: LangGraph's `getState` would revive every message only to write it as JSON
 * again. test/api/threads/state-equality.test.ts compares ways 1 and 2 with 3.
 *
 * 1. No node is due (threads that are not interrupted): the values are the channels' texts.
 *
 * 2. A node is due (histories, interrupted threads): `getState` gets a `ValueText` for each value, because it reads none.
 *
 * 3. Values must be computed (writes of an unfinished step or a command, other channels, subgraphs): `getState` reads
 * the revived checkpoint.
 */

import { markedOfGraph } from "../../../platform/lib/contents.ts";
import type { CheckpointStorage, StoredCheckpoint } from "../../../state/checkpoints/types.ts";
import { isPassing } from "../../../platform/database/passing-faults.ts";
import type { Graphs } from "../../../graphs/graphs.ts";
import { checkpointNotFound } from "../../../platform/domain/errors.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import type { ReadBudget } from "../../../platform/lib/large-answers.ts";
import type { Logger } from "../../../platform/lib/logger.ts";
import { finishedTasks } from "../../../graphs/pending-writes.ts";
import type { ThreadConfigurations } from "./configuration.ts";
import { createStateFields } from "./fields.ts";
import { unreadableFields } from "./snapshot.ts";
import type { StateOutcome } from "./repository.ts";
import { EMPTY_STATE, writeSelected, writeState, type StateFields } from "./state-json.ts";
import { outputKeysOf } from "../../../graphs/runnable-graph.ts";
import { createThreadGraphs, type ThreadOfGraph } from "./thread-graphs.ts";

export interface StateOptions {
  checkpoint?: { checkpoint_ns?: string; checkpoint_id?: string; checkpoint_map?: JsonObject };
  subgraphs?: boolean;
  select?: readonly string[];
  budget: ReadBudget;
}

export interface HistoryOptions {
  limit: number;
  /** Only states older than this checkpoint. */
  before?: string;
  metadata?: JsonObject;
  checkpoint?: { checkpoint_ns?: string; checkpoint_id?: string };
  select?: readonly string[];
  budget: ReadBudget;
}

export interface StateReader {
  /** Throws `checkpointNotFound`. */
  read(thread: ThreadOfGraph, options: StateOptions): Promise<string>;
  /** The newest values; null for a thread that never ran, and for unreadable values, which are logged. */
  values(thread: ThreadOfGraph, budget: ReadBudget): Promise<string | null>;
  /** The values at the end of a run, even if later runs changed them. */
  valuesOfRun(thread: ThreadOfGraph, runId: string, budget: ReadBudget): Promise<ValuesOfRun>;
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
  budget?: ReadBudget | undefined;
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
  logger: Logger,
): StateReader => {
  const threadGraphs = createThreadGraphs(graphs, configurations);
  const { graphOf, configurationsOf, areKeysChannels } = threadGraphs;
  const { fieldsOf, valuesOf, newestValuesOf } = createStateFields(checkpoints, threadGraphs);

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
    find: (budget: ReadBudget) => Promise<StoredCheckpoint | undefined>,
    budget: ReadBudget,
    textOf: typeof valuesOf = valuesOf,
  ): Promise<string | null> => {
    let refusal: unknown;
    const reserve = async (bytes: number): Promise<void> => {
      try {
        await budget.reserve(bytes);
      } catch (error) {
        refusal = error;
        throw error;
      }
    };
    try {
      const stored = await find({ reserve });
      if (stored === undefined) return null;
      const written = asWritten(thread, stored);
      return await textOf(written, await graphOf(written), stored);
    } catch (error) {
      if (error === refusal || isPassing(error)) throw error;
      logger.error(unread(error, thread.threadId), "the values of a thread can't be read");
      return null;
    }
  };

  return {
    async read(thread, { checkpoint = {}, subgraphs = false, select, budget }) {
      const { checkpoint_ns: checkpointNs = "", checkpoint_id: checkpointId } = checkpoint;
      const [graph, stored] = await Promise.all([
        graphOf(thread),
        checkpointId === undefined
          ? checkpoints.readHead(thread.threadId, checkpointNs, budget)
          : checkpoints.readAt(thread.threadId, checkpointNs, checkpointId, budget),
      ]);
      if (stored === undefined && checkpointId !== undefined) throw checkpointNotFound(checkpointId);
      const fields =
        stored === undefined
          ? EMPTY_STATE
          : await fieldsOf(thread, graph, stored, { isHead: checkpointId === undefined, subgraphs });
      return select === undefined ? writeState(fields) : writeSelected(fields, select);
    },

    async values(thread, budget) {
      const { threadId } = thread;
      return await readValues(thread, (noted) => checkpoints.readHead(threadId, "", noted), budget);
    },

    async valuesOfRun(thread, runId, budget) {
      const { threadId } = thread;
      let isHead = true;
      const find = async (noted: ReadBudget): Promise<StoredCheckpoint | undefined> => {
        const head = await checkpoints.readHead(threadId, "", noted);
        if (head === undefined || head.runId === runId) return head;
        const checkpointId = await checkpoints.latestOfRun(threadId, runId);
        if (checkpointId === undefined) return head; // The run wrote nothing, or the thread was pruned.
        const left = await checkpoints.readAt(threadId, "", checkpointId, noted);
        isHead = left === undefined;
        return left ?? head;
      };
      let outputKeys: readonly string[] | undefined = [];
      const values = await readValues(thread, find, budget, async (written, graph, stored) => {
        if (graph !== undefined) outputKeys = outputKeysOf(graph);
        // As the run returned them: with what had ended in a step that another task interrupted.
        return isHead ? await newestValuesOf(written, graph, stored) : await valuesOf(written, graph, stored);
      });
      return { values, isHead, outputKeys };
    },

    async outcome(thread) {
      const stored = await checkpoints.readHead(thread.threadId);
      if (stored === undefined) return { status: "idle", interrupts: "{}" };
      const graph = await graphOf(thread);
      const fields = await fieldsOf(thread, graph, stored, { isHead: true, subgraphs: false });
      return outcomeOf(fields, finishedTasks(stored.pendingWrites));
    },

    async *history(thread, { limit, before, metadata, checkpoint = {}, select, budget }) {
      const { checkpoint_ns: checkpointNs = "", checkpoint_id: checkpointId } = checkpoint;
      const graph = await graphOf(thread);
      const page = checkpoints.readHistory(thread.threadId, checkpointNs, {
        limit,
        budget,
        ...(before === undefined ? {} : { beforeCheckpointId: before }),
        ...(checkpointId === undefined ? {} : { checkpointId }),
        ...(metadata === undefined ? {} : { metadataFilter: metadata }),
      });
      for await (const stored of page) {
        const fields = await fieldsOf(thread, graph, stored, { isHead: false, subgraphs: false }).catch(
          (error: unknown) => {
            if (isPassing(error)) throw error;
            const { threadId, checkpointId: checkpoint_id } = stored;
            logger.error({ ...unread(error, threadId), checkpoint_id }, "a state can't be read");
            return unreadableFields(stored);
          },
        );
        yield select === undefined ? writeState(fields) : writeSelected(fields, select);
      }
    },

    async *headValues(threads, { keys, budget } = {}) {
      const byId = new Map(threads.map((thread) => [thread.threadId, thread]));
      const known = await configurationsOf(threads);
      const channels = keys !== undefined && (await areKeysChannels(threads, known)) ? keys : undefined;
      const remember = keys === undefined;
      const heads = checkpoints.readHeads([...byId.keys()], { channels, remember, budget });
      for await (const stored of heads) {
        const thread = byId.get(stored.threadId);
        if (thread === undefined) continue;
        let values: string;
        try {
          const written = asWritten(thread, stored);
          const graph = await (written === thread ? graphOf(thread, known) : graphOf(written));
          values = await valuesOf(written, graph, stored);
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
