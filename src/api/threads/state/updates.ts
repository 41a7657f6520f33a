import type { Command } from "@langchain/langgraph";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { Visibility } from "../../../access/visibility.ts";
import type { CheckpointStorage } from "../../../state/checkpoints/types.ts";
import { isPassing } from "../../../platform/database/passing-faults.ts";
import type { Graphs } from "../../../graphs/graphs.ts";
import { withoutRefused } from "../../../graphs/pending-writes.ts";
import {
  checkpointNotFound,
  graphNotFound,
  invalid,
  sqlState,
  StateStorageError,
  ThreadChangedError,
  ThreadloomError,
} from "../../../platform/domain/errors.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import type { ThreadConfigurations } from "./configuration.ts";
import type { CommandFields, StateUpdate, Superstep, UpdatedState } from "../schemas.ts";
import { placeOf, type CheckpointPlace } from "./state-json.ts";
import { deltaChannelsOf } from "./thread-graphs.ts";
import type { ValueClasses } from "../../../state/values/classes.ts";
import { byGraphCode } from "./graph-code.ts";
import type { StateRepository } from "./repository.ts";
import type { StateReader } from "./state.ts";

export interface StandingThread {
  visibility: Visibility<"threads">;
  threadId: string;
  graphId: string;
  version: string;
}

export interface StateWriter {
  /**
   * Writes a checkpoint as a node would. Throws `invalid` with LangGraph's message for a refused update,
   * `checkpointNotFound`, and `ThreadChangedError` if the thread has changed since.
   */
  update(thread: StandingThread, update: StateUpdate): Promise<UpdatedState>;
  /** One checkpoint per superstep. Throws like `update`. */
  replay(thread: StandingThread, supersteps: readonly Superstep[]): Promise<void>;
}

/** A sentence; the rest of LangGraph's message is a link. */
const SENTENCE_LENGTH_AT_MOST = 500;

/** The caller may see the first sentence of an error over the caller's values. */
const asRefusal = (error: unknown): unknown => {
  const isRefusal = error instanceof ThreadloomError;
  const isOurFault = error instanceof StateStorageError || sqlState(error) !== undefined;
  if (isRefusal || isOurFault || isPassing(error)) return error;
  const message = error instanceof Error ? error.message : String(error);
  const sentence = (message.split("\n")[0] ?? "").slice(0, SENTENCE_LENGTH_AT_MOST).trim();
  const stop = /[.!?]$/.test(sentence) ? "" : ".";
  return invalid(`The graph refuses this update: ${sentence || "it gives no reason"}${stop}`, error);
};

export const createStateWriter = (
  checkpoints: CheckpointStorage,
  graphs: Graphs,
  configurations: ThreadConfigurations,
): StateWriter => {
  const write = async (
    { visibility, threadId, graphId, version }: StandingThread,
    config: RunnableConfig,
    supersteps: Parameters<Awaited<ReturnType<Graphs["resolve"]>>["bulkUpdateState"]>[1],
  ): Promise<RunnableConfig> => {
    if (!graphs.has(graphId)) throw graphNotFound(graphId);
    // No transaction is open while the graph's code runs: a run that is created meanwhile makes the flush fail.
    const saver = checkpoints.saverForIdleThread(version);
    const configuration = (await configurations.of(visibility, [threadId])).get(threadId);
    const graph = await byGraphCode(`The graph '${graphId}' could not be built.`, () =>
      graphs.resolve(graphId, configuration, { checkpointer: saver }, "threads.update"),
    );
    saver.noteDeltaChannels(threadId, "", deltaChannelsOf(graph));
    saver.filter = (tuple, read) => withoutRefused(graph, tuple, read);
    try {
      const configured = {
        ...config,
        configurable: { ...configuration?.configurable, ...config.configurable },
      };
      const written = await graph.bulkUpdateState(configured, supersteps);
      await saver.flush();
      return written;
    } catch (error) {
      throw asRefusal(error);
    }
  };

  return {
    async update(thread, { values, as_node: asNode, checkpoint = {}, checkpoint_id: bareId }) {
      const { threadId } = thread;
      const { checkpoint_ns: checkpointNs = "", checkpoint_map: map } = checkpoint;
      const checkpointId = checkpoint.checkpoint_id ?? bareId;
      // LangGraph would take a missing checkpoint for an empty thread.
      if (
        checkpointId !== undefined &&
        (await checkpoints.readAt(threadId, checkpointNs, checkpointId)) === undefined
      ) {
        throw checkpointNotFound(checkpointId);
      }
      const config = {
        configurable: {
          thread_id: threadId,
          checkpoint_ns: checkpointNs,
          ...(checkpointId === undefined ? {} : { checkpoint_id: checkpointId }),
          ...(map === undefined ? {} : { checkpoint_map: map }),
        },
      };
      const updates = [{ values: values ?? null, ...(asNode === undefined ? {} : { asNode }) }];
      const written = placeOf(await write(thread, config, [{ updates }]));
      if (written === undefined) throw new Error("LangGraph did not say which checkpoint it wrote.");
      return updatedState(written);
    },

    async replay(thread, supersteps) {
      if (!graphs.has(thread.graphId)) throw graphNotFound(thread.graphId);
      const classes = graphs.classesOf(thread.graphId);
      await write(
        thread,
        { configurable: { thread_id: thread.threadId, checkpoint_ns: "" } },
        supersteps.map(({ updates }) => ({
          updates: updates.map(({ values, command, as_node: asNode }) => ({
            values: command === undefined ? (values ?? null) : commandOfUpdate(command, classes),
            asNode,
          })),
        })),
      );
    },
  };
};

export const updatedState = ({
  threadId,
  checkpointNs,
  checkpointId,
  map,
}: CheckpointPlace): UpdatedState => {
  const address = {
    thread_id: threadId,
    checkpoint_ns: checkpointNs,
    checkpoint_id: checkpointId,
    checkpoint_map: map,
  };
  return { checkpoint: address, configurable: address, checkpoint_id: checkpointId };
};

const commandOfUpdate = ({ update, resume, goto }: CommandFields, classes: ValueClasses): Command => {
  const destination = (place: string | { node: string; input?: unknown }) =>
    typeof place === "string" ? place : new classes.Send(place.node, place.input);
  return new classes.Command({
    ...(update === undefined ? {} : { update: update as JsonObject }),
    ...(resume === undefined ? {} : { resume }),
    ...(goto === undefined ? {} : { goto: Array.isArray(goto) ? goto.map(destination) : destination(goto) }),
  });
};

/** Serializes work per key, within this process. */
interface KeyedMutex {
  /** Waits for all earlier work of the key, even if it failed. */
  take<Result>(key: string, work: () => Promise<Result>): Promise<Result>;
}

const createKeyedMutex = (): KeyedMutex => {
  const last = new Map<string, Promise<unknown>>();
  return {
    async take(key, work) {
      const turn = (last.get(key) ?? Promise.resolve()).then(work);
      const over = turn.catch(() => undefined);
      last.set(key, over);
      try {
        return await turn;
      } finally {
        if (last.get(key) === over) last.delete(key);
      }
    },
  };
};

/** A prune or a finished run may change the thread during an update. */
const UPDATE_TRIES_AT_MOST = 10;

export const createStateUpdates = (
  states: StateRepository,
  reader: Pick<StateReader, "outcome">,
  writer: StateWriter,
) => {
  const updateMutex = createKeyedMutex();

  const recordOutcome = async (
    visibility: Visibility<"threads">,
    threadId: string,
    graphId: string,
  ): Promise<void> => {
    const outcome = await reader.outcome({ visibility, threadId, graphId });
    await states.recordOutcome(visibility, threadId, outcome);
  };

  const tryToUpdate = async (
    visibility: Visibility<"threads">,
    threadId: string,
    update: StateUpdate,
  ): Promise<UpdatedState> => {
    const standing = await states.standing(visibility, threadId);
    states.assertIdle(threadId, standing);
    const { graphId, version } = standing;
    if (graphId === null) {
      throw invalid(
        `Thread '${threadId}' has no graph yet: run an assistant on it, or give it 'metadata.graph_id'.`,
      );
    }
    const updated = await writer.update({ visibility, threadId, graphId, version }, update);
    await recordOutcome(visibility, threadId, graphId);
    return updated;
  };

  return {
    recordOutcome,

    /** Throws like `StateWriter.replay`. */
    async replay(
      visibility: Visibility<"threads">,
      threadId: string,
      graphId: string,
      supersteps: readonly Superstep[],
    ): Promise<void> {
      const { version } = await states.standing(visibility, threadId);
      await writer.replay({ visibility, threadId, graphId, version }, supersteps);
      await recordOutcome(visibility, threadId, graphId);
    },

    /**
     * Throws `threadBusyForUpdate` while a run is unfinished, `invalid` without a graph and for a refused update,
     * `ThreadChangedError` after all tries.
     */
    async update(
      visibility: Visibility<"threads">,
      threadId: string,
      update: StateUpdate,
    ): Promise<UpdatedState> {
      for (let tries = 1; ; tries += 1) {
        try {
          // Updates that have conflicted once run one after the other.
          return await (tries === 1
            ? tryToUpdate(visibility, threadId, update)
            : updateMutex.take(threadId, () => tryToUpdate(visibility, threadId, update)));
        } catch (error) {
          if (!(error instanceof ThreadChangedError) || tries === UPDATE_TRIES_AT_MOST) throw error;
        }
      }
    },
  };
};
