/**
 * Reading the state of a thread.
 *
 * LangGraph's own `getState` revives every message of a conversation, only for it to be written as JSON again. So
 * a state is put together here from the stored JSON texts, in two steps, and LangGraph does the rest:
 *
 *  1. Nothing is due: no node has a trigger that it has not seen, nothing is sent. `next` and `tasks` are empty and
 *     the values are the channels' texts. This is every thread that is not interrupted.
 *  2. Something is due: the graph's own `_prepareStateSnapshot` computes it, with a `ValueText` in the place of each
 *     value, since nothing in there looks into one. This is a history, and a thread that waits for a person.
 *  3. Values would have to be computed (the writes of a step that is half done count already, those of a command,
 *     a graph with other channels, a subgraph): `getState` on the revived checkpoint.
 *
 * test/api/threads/state-equality.test.ts holds 1 and 2 against 3.
 */

import { ofGraph } from "../../../platform/lib/contents.ts";
import type { CheckpointStorage, StoredCheckpoint } from "../../../state/checkpoints/types.ts";
import { isPassing } from "../../../platform/database/passing-faults.ts";
import type { Graphs } from "../../../graphs/graphs.ts";
import { checkpointNotFound } from "../../../platform/domain/errors.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import type { WhenLarge } from "../../../platform/lib/large-answers.ts";
import type { Logger } from "../../../platform/lib/logger.ts";
import type { ThreadConfigurations } from "./configuration.ts";
import { createStateFields } from "./fields.ts";
import { unreadableFields } from "./snapshot.ts";
import { EMPTY_STATE, writeSelected, writeState, type StateFields } from "./state-json.ts";
import { createThreadGraphs, type ThreadOfGraph } from "./thread-graphs.ts";

export interface StateOptions {
  checkpoint?: { checkpoint_ns?: string; checkpoint_id?: string; checkpoint_map?: JsonObject };
  /** Whether the tasks of subgraphs carry the subgraphs' own states. */
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
  /** JSON text of a state. Throws `checkpointNotFound` if one was named and is not there. */
  read(thread: ThreadOfGraph, options: StateOptions, whenLarge?: WhenLarge): Promise<string>;
  /** JSON text of the newest values; null for a thread that never ran, and if they can't be read, which is logged. */
  values(thread: ThreadOfGraph, whenLarge?: WhenLarge): Promise<string | null>;
  /** The same of what a run has left, which the thread may have gone on from since. */
  valuesOfRun(thread: ThreadOfGraph, runId: string, whenLarge?: WhenLarge): Promise<ValuesOfRun>;
  /** The fields of the newest state, each as JSON text; undefined for a thread that never ran. */
  head(thread: ThreadOfGraph): Promise<StateFields | undefined>;
  /** JSON texts of states, the newest first, each made when it is asked for. */
  history(
    thread: ThreadOfGraph,
    options: HistoryOptions,
    whenLarge?: WhenLarge,
  ): AsyncGenerator<string, void, undefined>;
  /**
   * JSON texts of the values of the newest checkpoints, in the order of the threads, each made when it is asked for;
   * those that never ran are missing. The threads were found with the same visibility. Missing is also one
   * that can't be read: it is logged, and must not fail a page of threads.
   */
  headValues(
    threads: readonly ThreadOfGraph[],
    options?: HeadValuesOptions,
  ): AsyncGenerator<[threadId: string, values: string], void, undefined>;
}

export interface ValuesOfRun {
  values: string | null;
  /** True if what the run has left is what the thread has now, its open questions included. */
  isHead: boolean;
}

export interface HeadValuesOptions {
  /** For who goes through many threads and looks at these keys of their values only: others may be missing. */
  keys?: ReadonlySet<string> | undefined;
  whenLarge?: WhenLarge | undefined;
}

export interface StateReaderOptions {
  checkpoints: CheckpointStorage;
  graphs: Graphs;
  configurations: ThreadConfigurations;
  logger: Logger;
}

const unread = (error: unknown, threadId: string) => ({ err: ofGraph(error), thread_id: threadId });

export const createStateReader = ({
  checkpoints,
  graphs,
  configurations,
  logger,
}: StateReaderOptions): StateReader => {
  const threadGraphs = createThreadGraphs({ graphs, configurations });
  const { graphOf, configurationsOf, areKeysChannels } = threadGraphs;
  const { fieldsOf, valuesOf } = createStateFields(checkpoints, threadGraphs);

  /**
   * The thread with the graph that wrote a checkpoint. The thread's own is that of the run which was created last: it may be
   * another one, and may not have begun yet. What another server stored may name a graph that is not here.
   */
  const asWritten = (thread: ThreadOfGraph, { metadata }: StoredCheckpoint): ThreadOfGraph => {
    const writer = metadata.graph_id;
    return typeof writer === "string" && writer !== thread.graphId && graphs.has(writer)
      ? { ...thread, graphId: writer }
      : thread;
  };

  /** The values of what `find` finds; null, and a line in the log, if they can't be read. */
  const readValues = async (
    thread: ThreadOfGraph,
    find: (whenLarge: WhenLarge) => Promise<StoredCheckpoint | undefined>,
    whenLarge: WhenLarge | undefined,
  ): Promise<string | null> => {
    let refusal: unknown;
    const waitForRoom: WhenLarge = async (bytes) => {
      try {
        await whenLarge?.(bytes);
      } catch (error) {
        refusal = error;
        throw error;
      }
    };
    try {
      const stored = await find(waitForRoom);
      if (stored === undefined) return null;
      const written = asWritten(thread, stored);
      return await valuesOf(written, await graphOf(written), stored);
    } catch (error) {
      if (error === refusal || isPassing(error)) throw error;
      logger.error(unread(error, thread.threadId), "the values of a thread can't be read");
      return null;
    }
  };

  return {
    async read(thread, { checkpoint = {}, subgraphs = false, select }, whenLarge) {
      const { checkpoint_ns: checkpointNs = "", checkpoint_id: checkpointId } = checkpoint;
      const [graph, stored] = await Promise.all([
        graphOf(thread),
        checkpointId === undefined
          ? checkpoints.readHead(thread.threadId, checkpointNs, whenLarge)
          : checkpoints.readAt(thread.threadId, checkpointNs, checkpointId, whenLarge),
      ]);
      if (stored === undefined && checkpointId !== undefined) throw checkpointNotFound(checkpointId);
      const fields =
        stored === undefined
          ? EMPTY_STATE
          : await fieldsOf(thread, graph, stored, { isHead: checkpointId === undefined, subgraphs });
      return select === undefined ? writeState(fields) : writeSelected(fields, select);
    },

    async values(thread, whenLarge) {
      const { threadId } = thread;
      return await readValues(thread, (room) => checkpoints.readHead(threadId, "", room), whenLarge);
    },

    async valuesOfRun(thread, runId, whenLarge) {
      const { threadId } = thread;
      let isHead = true;
      const find = async (room: WhenLarge): Promise<StoredCheckpoint | undefined> => {
        const head = await checkpoints.readHead(threadId, "", room);
        if (head === undefined || head.runId === runId) return head;
        const checkpointId = await checkpoints.latestOfRun(threadId, runId);
        if (checkpointId === undefined) return head; // it wrote nothing, or the thread was pruned
        const left = await checkpoints.readAt(threadId, "", checkpointId, room);
        isHead = left === undefined;
        return left ?? head;
      };
      return { values: await readValues(thread, find, whenLarge), isHead };
    },

    async head(thread) {
      const stored = await checkpoints.readHead(thread.threadId);
      if (stored === undefined) return undefined;
      return await fieldsOf(thread, await graphOf(thread), stored, { isHead: true, subgraphs: false });
    },

    async *history(thread, { limit, before, metadata, checkpoint = {}, select }, whenLarge) {
      const { checkpoint_ns: checkpointNs = "", checkpoint_id: checkpointId } = checkpoint;
      const graph = await graphOf(thread);
      const page = checkpoints.readHistory(thread.threadId, checkpointNs, {
        limit,
        whenLarge,
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

    async *headValues(threads, { keys, whenLarge } = {}) {
      const byId = new Map(threads.map((thread) => [thread.threadId, thread]));
      const known = await configurationsOf(threads);
      const channels = keys !== undefined && (await areKeysChannels(threads, known)) ? keys : undefined;
      const remember = keys === undefined;
      const heads = checkpoints.readHeads([...byId.keys()], { channels, remember, whenLarge });
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
