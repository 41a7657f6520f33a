import type { Authorize } from "../../../access/authorize.ts";
import type { Caller } from "../../../access/caller.ts";
import type { Visibility } from "../../../access/visibility.ts";
import { totalOf, type Page } from "../../../http/pagination.ts";
import { toExtract } from "../record.ts";
import { ASSISTANT_FIELDS, type Assistant, type AssistantFilter, type AssistantSearch } from "../schemas.ts";
import type { SearchRepository } from "./repository.ts";

export const createSearchService = (authorize: Authorize, repository: SearchRepository) => {
  const maySearch = async (
    caller: Caller,
    { graph_id, metadata, limit, offset }: Partial<AssistantSearch>,
  ): Promise<Visibility<"assistants">> =>
    await authorize(caller, "assistants", "search", { graph_id, metadata, limit, offset });

  return {
    async search(
      caller: Caller,
      search: AssistantSearch,
      signal?: AbortSignal,
    ): Promise<Page<Partial<Assistant>>> {
      const visibility = await maySearch(caller, search);
      const fields =
        search.select === undefined || search.select.length === 0 ? ASSISTANT_FIELDS : search.select;
      const { rows, total, cursor } = await repository.search(
        visibility,
        search,
        [...new Set(fields)],
        signal,
      );
      return {
        items: rows.map(toExtract),
        total: await totalOf(search, total, () => repository.count(visibility, search, signal)),
        offset: search.offset,
        cursor,
      };
    },

    async count(caller: Caller, filter: AssistantFilter, signal?: AbortSignal): Promise<number> {
      return await repository.count(await maySearch(caller, filter), filter, signal);
    },
  };
};

export type SearchService = ReturnType<typeof createSearchService>;
