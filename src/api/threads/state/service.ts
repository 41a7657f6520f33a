import type { Authorize } from "../../../access/authorize.ts";
import type { Caller } from "../../../access/caller.ts";
import type { Visibility } from "../../../access/visibility.ts";
import type { CheckpointStorage } from "../../../state/checkpoints/types.ts";
import { invalid } from "../../../platform/domain/errors.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import type { Room } from "../../../http/room.ts";
import type { ThreadRecordRow } from "../record.ts";
import type { ThreadRepository } from "../repository.ts";
import type { StateUpdate, UpdatedState } from "../schemas.ts";
import type { StateRepository } from "./repository.ts";
import type { HistoryOptions, StateOptions, StateReader, ValuesOfRun } from "./state.ts";
import { createStateUpdates, updatedState, type StateWriter } from "./updates.ts";

export interface StateServiceOptions {
  authorize: Authorize;
  repository: Pick<ThreadRepository, "get">;
  states: StateRepository;
  checkpoints: CheckpointStorage;
  reader: StateReader;
  writer: StateWriter;
  readRoom: Room;
}

/**
 * Methods with a caller throw `threadNotFound` for a hidden thread. Methods with a visibility are for other modules,
 * which have authorized the caller.
 */
export const createStateService = (options: StateServiceOptions) => {
  const { authorize, repository, states, checkpoints, reader, writer, readRoom } = options;
  const updates = createStateUpdates(states, reader, writer);

  const valuesOf = async (
    visibility: Visibility<"threads">,
    { thread_id: threadId, graph_id: graphId, untouched }: ThreadRecordRow,
    caller: Caller,
    signal?: AbortSignal,
  ): Promise<string | null> =>
    untouched
      ? null
      : await readRoom.make(caller, () => reader.values({ visibility, threadId, graphId }), signal);

  const mayUpdate = async (caller: Caller, threadId: string): Promise<Visibility<"threads">> =>
    await authorize(caller, "threads", "update", { thread_id: threadId, metadata: {} });

  return {
    recordOutcome: updates.recordOutcome,
    replay: updates.replay,
    valuesOf,

    /** See `StateReader`. */
    async valuesOfRun(
      visibility: Visibility<"threads">,
      { threadId, runId }: { threadId: string; runId: string },
      caller: Caller,
      signal?: AbortSignal,
    ): Promise<ValuesOfRun> {
      const row = await repository.get(visibility, threadId);
      if (row.untouched) return { values: null, isHead: true, outputKeys: undefined };
      const thread = { visibility, threadId, graphId: row.graph_id };
      return await readRoom.make(caller, () => reader.valuesOfRun(thread, runId), signal);
    },

    async read(
      caller: Caller,
      threadId: string,
      stateOptions: StateOptions,
      signal?: AbortSignal,
    ): Promise<string> {
      const visibility = await authorize(caller, "threads", "read", { thread_id: threadId });
      const { graphId } = await states.standing(visibility, threadId);
      const thread = { visibility, threadId, graphId };
      return await readRoom.make(caller, () => reader.read(thread, stateOptions), signal);
    },

    async *history(
      caller: Caller,
      threadId: string,
      historyOptions: HistoryOptions,
      signal?: AbortSignal,
    ): AsyncGenerator<string, void, undefined> {
      const visibility = await authorize(caller, "threads", "read", { thread_id: threadId });
      const { graphId } = await states.standing(visibility, threadId);
      const thread = { visibility, threadId, graphId };
      yield* readRoom.each(caller, reader.history(thread, historyOptions), signal);
    },

    /** Throws like `StateUpdates.update`. */
    async update(caller: Caller, threadId: string, update: StateUpdate): Promise<UpdatedState> {
      return await updates.update(await mayUpdate(caller, threadId), threadId, update);
    },

    /** Throws `invalid` for a thread that never ran. */
    async patchMetadata(caller: Caller, threadId: string, metadata: JsonObject): Promise<UpdatedState> {
      await states.standing(await mayUpdate(caller, threadId), threadId);
      const checkpointId = await checkpoints.mergeHeadMetadata(threadId, metadata);
      if (checkpointId === undefined) throw invalid(`Thread '${threadId}' has no state yet.`);
      return updatedState({ threadId, checkpointNs: "", checkpointId, map: null });
    },
  };
};

export type StateService = ReturnType<typeof createStateService>;
