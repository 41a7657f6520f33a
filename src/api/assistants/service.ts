import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import type { Database } from "../../platform/database/database.ts";
import type { Graphs } from "../../graphs/graphs.ts";
import { createGraphService } from "./graph/service.ts";
import { createRecordService } from "./records/service.ts";
import { createReferences } from "./references.ts";
import { createAssistantRepository } from "./repository.ts";
import { createSearchRepository } from "./search/repository.ts";
import { createSearchService } from "./search/service.ts";
import { createSystemAssistantRepository } from "./system/repository.ts";
import { createSystemAssistants } from "./system/service.ts";
import { createVersionLists } from "./versions/lists.ts";
import { createVersionRepository } from "./versions/repository.ts";
import { createVersionService } from "./versions/service.ts";

export type AssistantGraphs = Pick<
  Graphs,
  "ids" | "has" | "description" | "describe" | "drawing" | "subgraphs"
>;

export interface AssistantServiceOptions {
  database: Database;
  authorize: Authorize;
  graphs: AssistantGraphs;
  /** Missing ids are no error. */
  deleteThreads: (caller: Caller, threadIds: string[]) => Promise<unknown>;
  recursionLimitMax?: number;
}

/** A hidden assistant is treated as missing. Methods with a reference (references.ts) then throw `not_found`. */
export const createAssistantService = (options: AssistantServiceOptions) => {
  const { database, authorize, graphs, deleteThreads, recursionLimitMax = Infinity } = options;
  const repository = createAssistantRepository(database);
  const references = createReferences(repository, graphs);
  return {
    records: createRecordService({ authorize, repository, references, deleteThreads, recursionLimitMax }),
    search: createSearchService(authorize, createSearchRepository(database)),
    versions: createVersionService({
      database,
      authorize,
      repository: createVersionRepository(database),
      lists: createVersionLists(database),
      references,
      recursionLimitMax,
    }),
    graph: createGraphService(authorize, references, graphs),
    system: createSystemAssistants(authorize, createSystemAssistantRepository(database), graphs),
  };
};

export type AssistantService = ReturnType<typeof createAssistantService>;
