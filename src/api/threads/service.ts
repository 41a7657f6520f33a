import type { Authorize } from "../../access/authorize.ts";
import { createReadRoom } from "../../http/large-answers.ts";
import type { Room } from "../../http/room.ts";
import type { CheckpointStorage } from "../../state/checkpoints/types.ts";
import type { Database } from "../../platform/database/database.ts";
import type { Graphs } from "../../graphs/graphs.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { RunEnd } from "../../engine/queue/attempts.ts";
import type { RunEnds } from "../../engine/queue/ending.ts";
import type { ThreadTtl } from "../../graphs/project/expiry.ts";
import { createRecordService } from "./records/service.ts";
import { createThreadRepository } from "./repository.ts";
import { createSearchService } from "./search/service.ts";
import { createThreadConfigurations } from "./state/configuration.ts";
import { createReadSlicer } from "./state/read-slicer.ts";
import { createStateRepository } from "./state/repository.ts";
import { createStateService } from "./state/service.ts";
import { createStateReader } from "./state/state.ts";
import { createStateWriter } from "./state/updates.ts";
import { createUpkeepService } from "./upkeep/service.ts";

export interface ThreadServiceOptions {
  database: Database;
  authorize: Authorize;
  checkpoints: CheckpointStorage;
  ends: Pick<RunEnds, "deleteThreads">;
  graphs: Graphs;
  logger: Logger;
  /** Undefined: new threads never expire. */
  defaultTtl?: ThreadTtl | undefined;
  /** Receives the deleted threads, whose runs must stop, and the runs that ended. */
  readRoom?: Room;
  onThreadsDeleted?: (threadIds: readonly string[], ended: readonly RunEnd[]) => void;
}

export const createThreadService = (options: ThreadServiceOptions) => {
  const { database, authorize, checkpoints, graphs, logger, defaultTtl } = options;
  const { readRoom = createReadRoom() } = options;
  const repository = createThreadRepository(database);
  const stateRepository = createStateRepository(database);
  const configurations = createThreadConfigurations(database);
  const slicer = createReadSlicer();
  const reader = createStateReader(checkpoints, graphs, configurations, slicer, logger);
  const writer = createStateWriter(checkpoints, graphs, configurations);

  const states = createStateService({
    ...{ ...options, repository, states: stateRepository },
    ...{ reader, writer, readRoom },
  });
  const search = createSearchService(database, authorize, slicer, reader, readRoom);
  const upkeep = createUpkeepService({ ...options, states: stateRepository });
  return {
    records: createRecordService({ ...options, repository, states, upkeep, defaultTtl }),
    search,
    states,
    upkeep,
    /** Shared by long answers and searches by values. */
    slicer,
  };
};

export type ThreadService = ReturnType<typeof createThreadService>;
