import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import type { Visibility } from "../../access/visibility.ts";
import type { CheckpointStorage } from "../../state/checkpoints/types.ts";
import type { Database } from "../../platform/database/database.ts";
import { metadataTooLarge } from "../../platform/database/merging.ts";
import type { Graphs } from "../../graphs/graphs.ts";
import { graphNotFound, invalid, threadNotFound, threadTaken } from "../../platform/domain/errors.ts";
import type { TtlValue } from "../../access/values.ts";
import type { ThreadTtl } from "../../graphs/project/expiry.ts";
import { writeRecord, type ThreadRecordRow } from "./record.ts";
import type { ThreadRepository } from "./repository.ts";
import type { ThreadCreate, ThreadPatch } from "./schemas.ts";
import type { StateService } from "./state/service.ts";
import type { UpkeepService } from "./upkeep.ts";

export interface RecordServiceOptions {
  database: Database;
  authorize: Authorize;
  repository: ThreadRepository;
  checkpoints: Pick<CheckpointStorage, "copyThread">;
  graphs: Pick<Graphs, "has">;
  states: StateService;
  upkeep: UpkeepService;
  defaultTtl?: ThreadTtl | undefined;
}

const assertGraphOfStates = (graphs: Pick<Graphs, "has">, graphId: unknown): void => {
  if (typeof graphId !== "string") {
    throw invalid("'supersteps': 'metadata.graph_id' must name the graph whose states they are.");
  }
  if (!graphs.has(graphId)) throw graphNotFound(graphId);
};

const toValue = (ttl: ThreadTtl | undefined): TtlValue | undefined =>
  ttl && { strategy: ttl.strategy, ttl: ttl.minutes };
const toTtl = (value: TtlValue | undefined): ThreadTtl | undefined =>
  value && { strategy: value.strategy, minutes: value.ttl };

export interface SeenThread {
  caller: Caller;
  visibility: Visibility<"threads">;
  row: ThreadRecordRow;
  includeTtl?: boolean;
}

/** Methods throw `threadNotFound` for a thread that the caller can't see. */
export const createRecordService = (options: RecordServiceOptions) => {
  const { database, authorize, repository, checkpoints, graphs, states, upkeep, defaultTtl } = options;

  const giveStates = async (
    visibility: Visibility<"threads">,
    { thread_id: threadId, graph_id: graphId }: ThreadRecordRow,
    supersteps: NonNullable<ThreadCreate["supersteps"]>,
  ): Promise<ThreadRecordRow> => {
    try {
      await states.replay(visibility, threadId, graphId ?? "", supersteps);
    } catch (error) {
      await upkeep.takeBack(threadId);
      throw error;
    }
    return await repository.get(visibility, threadId);
  };

  return {
    /** JSON of the thread's record with its newest values. */
    async write({ caller, visibility, row, includeTtl }: SeenThread, signal?: AbortSignal): Promise<string> {
      return writeRecord(row, { values: await states.valuesOf(visibility, row, caller, signal), includeTtl });
    },

    /** Throws `conflict` for a taken id, unless `if_exists` is `do_nothing`. */
    async create(caller: Caller, thread: ThreadCreate): Promise<SeenThread> {
      const { supersteps = [], thread_id, metadata = {}, if_exists } = thread;
      const ttl = toValue(thread.ttl);
      const asked = { thread_id, metadata, if_exists, ...(ttl && { ttl }) };
      const visibility = await authorize(caller, "threads", "create", asked);
      if (supersteps.length > 0) assertGraphOfStates(graphs, visibility.value.metadata.graph_id);
      const row = await repository.insert(visibility, {
        threadId: thread_id,
        ttl: toTtl(visibility.value.ttl) ?? defaultTtl,
      });
      if (row !== undefined) {
        if (supersteps.length === 0) return { caller, visibility, row };
        return { caller, visibility, row: await giveStates(visibility, row, supersteps) };
      }
      const threadId = thread.thread_id ?? "";
      // A hidden thread's id is a conflict, too.
      const existing =
        thread.if_exists === "do_nothing" ? await repository.find(visibility, threadId) : undefined;
      if (existing === undefined) throw threadTaken(threadId);
      return { caller, visibility, row: existing };
    },

    async read(caller: Caller, threadId: string): Promise<SeenThread> {
      const visibility = await authorize(caller, "threads", "read", { thread_id: threadId });
      return { caller, visibility, row: await repository.get(visibility, threadId) };
    },

    /**
     * Restarts the time to live. Setting one needs the right to delete, because it later removes the thread or its
     * states.
     */
    async patch(caller: Caller, threadId: string, { metadata = {}, ttl }: ThreadPatch): Promise<SeenThread> {
      const value = toValue(ttl);
      const asked = { thread_id: threadId, metadata, ...(value && { ttl: value }) };
      const visibility = await authorize(caller, "threads", "update", asked);
      const removable = value && (await authorize(caller, "threads", "delete", { thread_id: threadId }));
      const granted = toTtl(visibility.value.ttl);
      let row = await repository.patch(visibility, threadId, granted, removable);
      if (row === undefined) {
        await repository.get(visibility, threadId);
        if (removable !== undefined) await repository.get(removable, threadId);
        // While the first try waited, the thread may have been recreated; the first try saw neither row.
        row = await repository.patch(visibility, threadId, granted, removable);
        if (row === undefined) throw metadataTooLarge();
      }
      return { caller, visibility, row, includeTtl: granted !== undefined };
    },

    async copy(caller: Caller, threadId: string): Promise<SeenThread> {
      const readable = await authorize(caller, "threads", "read", { thread_id: threadId });
      const creatable = await authorize(caller, "threads", "create", { metadata: {} });
      const copy = await database.transaction(async (transaction) => {
        const copied = await repository.insertCopy(transaction, readable, creatable, threadId);
        if (copied === undefined) throw threadNotFound(threadId);
        await checkpoints.copyThread(threadId, copied.thread_id, transaction);
        return copied;
      });
      const { thread_id: copyId, graph_id: graphId, was_busy: wasBusy } = copy;
      if (wasBusy && graphId !== null) await states.recordOutcome(creatable, copyId, graphId);
      const row = wasBusy ? await repository.get(creatable, copyId) : copy;
      return { caller, visibility: creatable, row };
    },
  };
};

export type RecordService = ReturnType<typeof createRecordService>;
