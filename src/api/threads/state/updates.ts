import type { Command } from "@langchain/langgraph";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { Visibility } from "../../../access/visibility.ts";
import type { Graphs } from "../../../graphs/graphs.ts";
import { withoutRefused } from "../../../graphs/pending-writes.ts";
import type { Database } from "../../../platform/database/database.ts";
import { isPassing } from "../../../platform/database/passing-faults.ts";
import {
  checkpointNotFound,
  graphNotFound,
  invalid,
  sqlState,
  StateStorageError,
  threadBusyForUpdate,
  ThreadChangedError,
  ThreadloomError,
} from "../../../platform/domain/errors.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import type { CheckpointStorage } from "../../../state/checkpoints/types.ts";
import type { ValueClasses } from "../../../state/values/classes.ts";
import type { ThreadRepository } from "../repository.ts";
import type { CommandFields, StateUpdate, Superstep, UpdatedState } from "../schemas.ts";
import { byGraphCode, configurationsOf, deltaChannelsOf } from "./graphs.ts";
import type { StateReader } from "./state.ts";
import { addressIn, type CheckpointAddress } from "./state-json.ts";

interface StandingThread {
  visibility: Visibility<"threads">;
  threadId: string;
  graphId: string;
  version: string;
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

const commandOfUpdate = ({ update, resume, goto }: CommandFields, classes: ValueClasses): Command => {
  const destination = (place: string | { node: string; input?: unknown }) =>
    typeof place === "string" ? place : new classes.Send(place.node, place.input);
  return new classes.Command({
    ...(update === undefined ? {} : { update: update as JsonObject }),
    ...(resume === undefined ? {} : { resume }),
    ...(goto === undefined ? {} : { goto: Array.isArray(goto) ? goto.map(destination) : destination(goto) }),
  });
};

export const updatedState = (address: CheckpointAddress): UpdatedState => ({
  checkpoint: address,
  configurable: address,
  checkpoint_id: address.checkpoint_id,
});

/** A prune or a finished run may change the thread during an update. */
const UPDATE_TRIES_AT_MOST = 10;

export interface StateUpdatesParts {
  database: Database;
  repository: ThreadRepository;
  checkpoints: CheckpointStorage;
  graphs: Graphs;
  reader: Pick<StateReader, "outcome">;
}

export const createStateUpdates = (parts: StateUpdatesParts) => {
  const { database, repository, checkpoints, graphs, reader } = parts;

  const write = async (
    { visibility, threadId, graphId, version }: StandingThread,
    config: RunnableConfig,
    supersteps: Parameters<Awaited<ReturnType<Graphs["resolve"]>>["bulkUpdateState"]>[1],
  ): Promise<RunnableConfig> => {
    if (!graphs.has(graphId)) throw graphNotFound(graphId);
    // No transaction is open while the graph's code runs: a run that is created meanwhile makes the flush fail.
    const saver = checkpoints.saverForIdleThread(version);
    const configuration = (await configurationsOf(database, visibility, [threadId])).get(threadId);
    const graph = await byGraphCode(`The graph '${graphId}' could not be built.`, () =>
      graphs.resolve(graphId, configuration, { checkpointer: saver }, "threads.update"),
    );
    saver.noteDeltaChannels(threadId, "", deltaChannelsOf(graph));
    saver.filter = (tuple, read) => withoutRefused(graph, tuple, read);
    const configurable = { ...configuration?.configurable, thread_id: threadId, ...config.configurable };
    try {
      const written = await graph.bulkUpdateState({ configurable }, supersteps);
      await saver.flush();
      return written;
    } catch (error) {
      throw asRefusal(error);
    }
  };

  const recordOutcome = async (
    visibility: Visibility<"threads">,
    threadId: string,
    graphId: string,
  ): Promise<void> => {
    const outcome = await reader.outcome({ visibility, threadId, graphId });
    await repository.recordOutcome(visibility, threadId, outcome);
  };

  const tryToUpdate = async (
    visibility: Visibility<"threads">,
    threadId: string,
    update: StateUpdate,
  ): Promise<UpdatedState> => {
    const { graphId, busy, version } = await repository.standing(visibility, threadId);
    // Only refuses early: the saver's `put` decides.
    if (busy) throw threadBusyForUpdate(threadId);
    if (graphId === null) {
      throw invalid(
        `Thread '${threadId}' has no graph yet: run an assistant on it, or give it 'metadata.graph_id'.`,
      );
    }
    const { values, as_node: asNode, checkpoint } = update;
    const checkpoint_id = checkpoint?.checkpoint_id ?? update.checkpoint_id;
    const checkpoint_ns = checkpoint?.checkpoint_ns ?? "";
    const checkpoint_map = checkpoint?.checkpoint_map;
    // LangGraph would take a missing checkpoint for an empty thread.
    if (
      checkpoint_id !== undefined &&
      (await checkpoints.readAt(threadId, checkpoint_ns, checkpoint_id)) === undefined
    )
      throw checkpointNotFound(checkpoint_id);
    const configurable = {
      checkpoint_ns,
      ...(checkpoint_id === undefined ? {} : { checkpoint_id }),
      ...(checkpoint_map === undefined ? {} : { checkpoint_map }),
    };
    const updates = [{ values: values ?? null, ...(asNode === undefined ? {} : { asNode }) }];
    const thread = { visibility, threadId, graphId, version };
    const written = addressIn(await write(thread, { configurable }, [{ updates }]));
    if (written === null) throw new Error("LangGraph did not say which checkpoint it wrote.");
    await recordOutcome(visibility, threadId, graphId);
    return updatedState(written);
  };

  /** The last update of each thread in this process. */
  const last = new Map<string, Promise<unknown>>();
  /** Waits for all earlier work on the thread, even if it failed. */
  const inTurn = async <Result>(threadId: string, work: () => Promise<Result>): Promise<Result> => {
    const turn = (last.get(threadId) ?? Promise.resolve()).then(work);
    const over = turn.catch(() => undefined);
    last.set(threadId, over);
    try {
      return await turn;
    } finally {
      if (last.get(threadId) === over) last.delete(threadId);
    }
  };

  return {
    recordOutcome,

    /** One checkpoint per superstep. Throws like `update`. */
    async replay(
      visibility: Visibility<"threads">,
      threadId: string,
      graphId: string,
      supersteps: readonly Superstep[],
    ): Promise<void> {
      const { version } = await repository.standing(visibility, threadId);
      if (!graphs.has(graphId)) throw graphNotFound(graphId);
      const classes = graphs.classesOf(graphId);
      await write(
        { visibility, threadId, graphId, version },
        { configurable: { checkpoint_ns: "" } },
        supersteps.map(({ updates }) => ({
          updates: updates.map(({ values, command, as_node: asNode }) => ({
            values: command === undefined ? (values ?? null) : commandOfUpdate(command, classes),
            asNode,
          })),
        })),
      );
      await recordOutcome(visibility, threadId, graphId);
    },

    /**
     * Writes a checkpoint as a node would. Throws `threadBusyForUpdate` while a run is unfinished, `checkpointNotFound`,
     * `invalid` without a graph and with LangGraph's message for a refused update, `ThreadChangedError` after all tries.
     */
    async update(
      visibility: Visibility<"threads">,
      threadId: string,
      update: StateUpdate,
    ): Promise<UpdatedState> {
      const attempt = (): Promise<UpdatedState> => tryToUpdate(visibility, threadId, update);
      for (let tries = 1; ; tries += 1) {
        try {
          // Updates that have conflicted once run one after the other.
          return await (tries === 1 ? attempt() : inTurn(threadId, attempt));
        } catch (error) {
          if (!(error instanceof ThreadChangedError) || tries === UPDATE_TRIES_AT_MOST) throw error;
        }
      }
    },
  };
};
