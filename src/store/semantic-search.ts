import { invalid } from "../lib/errors.ts";

/**
 * Refuses a search by meaning. LangGraph's own stores would answer it with any items, as if there were no query:
 * a caller could not tell that from a result.
 */
export const assertNoQuery = (query: string | undefined): void => {
  if (query === undefined || query === "") return;
  throw invalid("'query': this server has no semantic search configured; leave it out, or use 'filter'.");
};

/** Refuses paths to index for a search by meaning; `false` and nothing at all ask for none. */
export const assertNoIndex = (index: readonly string[] | false | null | undefined): void => {
  if (index === undefined || index === null || index === false || index.length === 0) return;
  throw invalid("'index': this server has no semantic search configured; leave it out, or send false.");
};
