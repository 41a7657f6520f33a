import type { Authorize } from "../../access/authorize.ts";
import type { RunEnd } from "../../engine/queue/attempts.ts";
import type { RunEnds } from "../../engine/queue/ending.ts";
import type { Graphs } from "../../graphs/graphs.ts";
import type { ThreadTtl } from "../../graphs/project/expiry.ts";
import { createReadRoom } from "../../http/large-answers.ts";
import type { Room } from "../../http/room.ts";
import type { Database } from "../../platform/database/database.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { CheckpointStorage } from "../../state/checkpoints/types.ts";
import { createRecordService } from "./records.ts";
import { createThreadRepository } from "./repository.ts";
import { createThreadPages } from "./search/pages.ts";
import { createThreadSearcher } from "./search/search.ts";
import { createStateService } from "./state/service.ts";
import { createReadSlicer, createStateReader } from "./state/state.ts";
import { createUpkeepService } from "./upkeep.ts";

export interface ThreadServiceOptions {
  database: Database;
  authorize: Authorize;
  checkpoints: CheckpointStorage;
  ends: Pick<RunEnds, "deleteThreads">;
  graphs: Graphs;
  logger: Logger;
  /** Undefined: new threads never expire. */
  defaultTtl?: ThreadTtl | undefined;
  readRoom?: Room;
  /** Receives the deleted threads, whose runs must stop, and the runs that ended. */
  onThreadsDeleted?: (threadIds: readonly string[], ended: readonly RunEnd[]) => void;
}

export const createThreadService = (options: ThreadServiceOptions) => {
  const { database, checkpoints, graphs, logger, readRoom = createReadRoom() } = options;
  const repository = createThreadRepository(database);
  const slicer = createReadSlicer();
  const reader = createStateReader(database, checkpoints, graphs, slicer, logger);
  const parts = { ...options, readRoom, repository, slicer, reader };
  const states = createStateService(parts);
  const upkeep = createUpkeepService(parts);
  return {
    records: createRecordService({ ...parts, states, upkeep }),
    search: createThreadPages({
      ...parts,
      searcher: createThreadSearcher(database),
      valuesOf: reader.headValues,
    }),
    states,
    upkeep,
    /** Shared by long answers and searches by values. */
    slicer,
  };
};

export type ThreadService = ReturnType<typeof createThreadService>;
