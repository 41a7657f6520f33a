import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import type { Page } from "../../http/pagination.ts";
import { toExtract } from "../record.ts";
import { ASSISTANT_FIELDS, type Assistant, type AssistantFilter, type AssistantSearch } from "../schemas.ts";
import type { SearchRepository } from "./repository.ts";

export interface SearchServiceParts {
  authorize: Authorize;
  repository: SearchRepository;
}

/** Finds assistants. */
export const createSearchService = ({ authorize, repository }: SearchServiceParts) => ({
  /** A page that would get too large ends early; its `total` is the true one. */
  async search(
    caller: Caller,
    search: AssistantSearch,
    signal?: AbortSignal,
  ): Promise<Page<Partial<Assistant>>> {
    const visibility = await authorize(caller, "assistants", "search");
    const fields =
      search.select === undefined || search.select.length === 0 ? ASSISTANT_FIELDS : search.select;
    const { rows, total } = await repository.search(visibility, search, [...new Set(fields)], signal);
    return {
      items: rows.map(toExtract),
      total: total ?? (search.offset === 0 ? 0 : await repository.count(visibility, search, signal)),
      offset: search.offset,
    };
  },

  async count(caller: Caller, filter: AssistantFilter, signal?: AbortSignal): Promise<number> {
    return await repository.count(await authorize(caller, "assistants", "search"), filter, signal);
  },
});

export type SearchService = ReturnType<typeof createSearchService>;
