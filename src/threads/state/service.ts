import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import type { Visibility } from "../../access/visibility.ts";
import type { CheckpointStorage } from "../../checkpoints/types.ts";
import { invalid, ThreadChangedError } from "../../lib/errors.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { WhenLarge } from "../../lib/large-answers.ts";
import type { ThreadRecordRow } from "../record.ts";
import type { ThreadRepository } from "../repository.ts";
import type { StateUpdate, Superstep, UpdatedState } from "../schemas.ts";
import type { HistoryOptions, StateOptions, StateReader } from "./state.ts";
import { createTurns } from "./turns.ts";
import { outcomeOf, updatedState, type StateWriter } from "./update.ts";

export interface StateServiceOptions {
  authorize: Authorize;
  repository: ThreadRepository;
  checkpoints: CheckpointStorage;
  reader: StateReader;
  writer: StateWriter;
}

/** An update of a state is made anew if the thread was changed meanwhile: by a prune, or a run that came and went. */
const UPDATE_TRIES_AT_MOST = 10;

/**
 * The states of threads. What goes out is JSON text, since it comes out of the database as text. `whenLarge` is awaited
 * before a large state is read for the answer.
 *
 * Every method that takes a thread's id throws `threadNotFound` if there is none that its caller may see. Those that
 * take a visibility are for the rooms around: whoever calls them has asked authorization already.
 */
export const createStateService = (options: StateServiceOptions) => {
  const { authorize, repository, checkpoints, reader, writer } = options;
  const turns = createTurns();

  const recordOutcome = async (
    visibility: Visibility<"threads">,
    threadId: string,
    graphId: string,
  ): Promise<void> => {
    const fields = await reader.head({ visibility, threadId, graphId });
    await repository.recordOutcome(visibility, threadId, outcomeOf(fields));
  };

  /** JSON text of the newest values of a thread; null if it never ran. */
  const valuesOf = async (
    visibility: Visibility<"threads">,
    { thread_id: threadId, graph_id: graphId, untouched }: ThreadRecordRow,
    whenLarge?: WhenLarge,
  ): Promise<string | null> =>
    untouched ? null : await reader.values({ visibility, threadId, graphId }, whenLarge);

  const tryToUpdate = async (
    visibility: Visibility<"threads">,
    threadId: string,
    update: StateUpdate,
  ): Promise<UpdatedState> => {
    const standing = await repository.standing(visibility, threadId);
    repository.assertIdle(threadId, standing);
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
    valuesOf,

    /** Writes the first states of a thread that has none. Throws like `StateWriter.replay`. */
    async replay(
      visibility: Visibility<"threads">,
      threadId: string,
      graphId: string,
      supersteps: readonly Superstep[],
    ): Promise<void> {
      const { version } = await repository.standing(visibility, threadId);
      await writer.replay({ visibility, threadId, graphId, version }, supersteps);
      await recordOutcome(visibility, threadId, graphId);
    },

    /** JSON text of the values of the newest checkpoint; null if the thread never ran. */
    async headValues(
      visibility: Visibility<"threads">,
      threadId: string,
      whenLarge?: WhenLarge,
    ): Promise<string | null> {
      return await valuesOf(visibility, await repository.get(visibility, threadId), whenLarge);
    },

    async read(
      caller: Caller,
      threadId: string,
      stateOptions: StateOptions,
      whenLarge?: WhenLarge,
    ): Promise<string> {
      const visibility = await authorize(caller, "threads", "read");
      const { graphId } = await repository.standing(visibility, threadId);
      return await reader.read({ visibility, threadId, graphId }, stateOptions, whenLarge);
    },

    /** JSON texts of states, the newest first, each made when it is asked for. */
    async *history(
      caller: Caller,
      threadId: string,
      historyOptions: HistoryOptions,
      whenLarge?: WhenLarge,
    ): AsyncGenerator<string, void, undefined> {
      const visibility = await authorize(caller, "threads", "read");
      const { graphId } = await repository.standing(visibility, threadId);
      yield* reader.history({ visibility, threadId, graphId }, historyOptions, whenLarge);
    },

    /**
     * Writes a new checkpoint, as a node would have. Throws `threadBusy` while a run is pending or running,
     * `invalid` for a thread without a graph and for what the graph refuses, `ThreadChangedError` if others keep
     * changing the thread.
     */
    async update(caller: Caller, threadId: string, update: StateUpdate): Promise<UpdatedState> {
      const visibility = await authorize(caller, "threads", "update");
      for (let tries = 1; ; tries += 1) {
        try {
          // Those that were in each other's way take turns from then on.
          return await (tries === 1
            ? tryToUpdate(visibility, threadId, update)
            : turns.take(threadId, () => tryToUpdate(visibility, threadId, update)));
        } catch (error) {
          if (!(error instanceof ThreadChangedError) || tries === UPDATE_TRIES_AT_MOST) throw error;
        }
      }
    },

    /** Merges metadata into those of the newest checkpoint. Throws `invalid` for a thread that never ran. */
    async patchMetadata(caller: Caller, threadId: string, metadata: JsonObject): Promise<UpdatedState> {
      await repository.standing(await authorize(caller, "threads", "update"), threadId);
      const checkpointId = await checkpoints.mergeHeadMetadata(threadId, metadata);
      if (checkpointId === undefined) throw invalid(`Thread '${threadId}' has no state yet.`);
      return updatedState({ threadId, namespace: "", checkpointId, map: null });
    },
  };
};

export type StateService = ReturnType<typeof createStateService>;
