import type { Visibility } from "../../../access/visibility.ts";
import { invalid, ThreadChangedError } from "../../../platform/domain/errors.ts";
import type { StateUpdate, Superstep, UpdatedState } from "../schemas.ts";
import type { StateRepository } from "./repository.ts";
import type { StateReader } from "./state.ts";
import { createKeyedMutex } from "./keyed-mutex.ts";
import type { StateWriter } from "./update.ts";

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
