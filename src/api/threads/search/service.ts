import type { Authorize } from "../../../access/authorize.ts";
import type { Caller } from "../../../access/caller.ts";
import type { Visibility } from "../../../access/visibility.ts";
import type { Room } from "../../../http/room.ts";
import type { Database } from "../../../platform/database/database.ts";
import type { TimeSlicer } from "../../../platform/lib/time-slicer.ts";
import type { ThreadFilter, ThreadSearch } from "../schemas.ts";
import type { StateReader } from "../state/state.ts";
import { createThreadPages, type ThreadPage } from "./pages.ts";
import { createThreadSearcher } from "./search.ts";

export const createSearchService = (
  database: Database,
  authorize: Authorize,
  slicer: TimeSlicer,
  reader: Pick<StateReader, "headValues">,
  readRoom: Room,
) => {
  const pages = createThreadPages({
    searcher: createThreadSearcher(database),
    slicer,
    readRoom,
    valuesOf: (visibility, rows, options) =>
      reader.headValues(
        rows
          .filter((row) => !row.untouched)
          .map(({ thread_id: threadId, graph_id: graphId }) => ({ visibility, threadId, graphId })),
        options,
      ),
  });
  const maySearch = async (
    caller: Caller,
    { ids, status, metadata, values, limit, offset }: Partial<ThreadSearch>,
  ): Promise<Visibility<"threads">> =>
    await authorize(caller, "threads", "search", { ids, status, metadata, values, limit, offset });

  return {
    async page(caller: Caller, search: ThreadSearch, signal?: AbortSignal): Promise<ThreadPage> {
      return await pages.search(await maySearch(caller, search), search, { signal, caller });
    },

    async count(caller: Caller, filter: ThreadFilter, signal?: AbortSignal): Promise<number> {
      return await pages.count(await maySearch(caller, filter), filter, { signal, caller });
    },
  };
};

export type SearchService = ReturnType<typeof createSearchService>;
