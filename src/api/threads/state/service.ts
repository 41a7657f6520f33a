import type { Authorize } from "../../../access/authorize.ts";
import type { Caller } from "../../../access/caller.ts";
import type { Visibility } from "../../../access/visibility.ts";
import type { Room } from "../../../http/room.ts";
import { invalid } from "../../../platform/domain/errors.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import type { ThreadRecordRow } from "../record.ts";
import type { StateUpdate, UpdatedState } from "../schemas.ts";
import type { HistoryOptions, StateOptions, StateReader, ValuesOfRun } from "./state.ts";
import { createStateUpdates, updatedState, type StateUpdatesParts } from "./updates.ts";

export interface StateServiceOptions extends StateUpdatesParts {
  authorize: Authorize;
  reader: StateReader;
  readRoom: Room;
}

/**
 * Methods with a caller throw `threadNotFound` for a hidden thread. Methods with a visibility are for other modules,
 * which have authorized the caller.
 */
export const createStateService = (options: StateServiceOptions) => {
  const { authorize, repository, checkpoints, reader, readRoom } = options;
  const updates = createStateUpdates(options);

  const readable = async (caller: Caller, threadId: string) => {
    const visibility = await authorize(caller, "threads", "read", { thread_id: threadId });
    const { graphId } = await repository.standing(visibility, threadId);
    return { visibility, threadId, graphId };
  };

  const mayUpdate = async (caller: Caller, threadId: string): Promise<Visibility<"threads">> =>
    await authorize(caller, "threads", "update", { thread_id: threadId, metadata: {} });

  return {
    recordOutcome: updates.recordOutcome,
    replay: updates.replay,

    async valuesOf(
      visibility: Visibility<"threads">,
      { thread_id: threadId, graph_id: graphId, untouched }: ThreadRecordRow,
      caller: Caller,
      signal?: AbortSignal,
    ): Promise<string | null> {
      if (untouched) return null;
      return await readRoom.make(caller, () => reader.values({ visibility, threadId, graphId }), signal);
    },

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
      const thread = await readable(caller, threadId);
      return await readRoom.make(caller, () => reader.read(thread, stateOptions), signal);
    },

    async *history(
      caller: Caller,
      threadId: string,
      historyOptions: HistoryOptions,
      signal?: AbortSignal,
    ): AsyncGenerator<string, void, undefined> {
      const thread = await readable(caller, threadId);
      yield* readRoom.each(caller, reader.history(thread, historyOptions), signal);
    },

    /** Throws like `update` of updates.ts. */
    async update(caller: Caller, threadId: string, update: StateUpdate): Promise<UpdatedState> {
      return await updates.update(await mayUpdate(caller, threadId), threadId, update);
    },

    /** Throws `invalid` for a thread that never ran. */
    async patchMetadata(caller: Caller, threadId: string, metadata: JsonObject): Promise<UpdatedState> {
      await repository.standing(await mayUpdate(caller, threadId), threadId);
      const checkpoint_id = await checkpoints.mergeHeadMetadata(threadId, metadata);
      if (checkpoint_id === undefined) throw invalid(`Thread '${threadId}' has no state yet.`);
      return updatedState({ thread_id: threadId, checkpoint_ns: "", checkpoint_id, checkpoint_map: null });
    },
  };
};

export type StateService = ReturnType<typeof createStateService>;
