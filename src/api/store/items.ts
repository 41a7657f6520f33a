import type { Visibility } from "../../access/visibility.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { hashOf, textsOf, type Embedder } from "./embedding.ts";
import type { ItemSearch, NewItem, StoreRepository } from "./repository.ts";
import type { TextOfItem, VectorRepository } from "./vectors.ts";

export interface SemanticIndex {
  /** The model's name in langgraph.json. */
  embed: string;
  embedder: Embedder;
  /** Default paths of texts. */
  fields: readonly string[];
}

export interface ItemsOptions {
  repository: StoreRepository;
  /** Undefined if the database has no table for vectors. */
  vectors?: VectorRepository | undefined;
  /** Undefined without semantic search. */
  index?: SemanticIndex | undefined;
  logger: Pick<Logger, "warn">;
}

export interface ItemToStore extends NewItem {
  /** Parses `valueJson`; called only to index the item. */
  value: () => unknown;
  /** Paths of texts; false for none, undefined for the defaults. */
  index: readonly string[] | false | undefined;
}

export interface ItemQuery extends Omit<ItemSearch, "near"> {
  query: string | undefined;
}

/** Calls the embedding model, which is on another server, only outside of transactions. */
export const createItems = ({ repository, vectors, index, logger }: ItemsOptions) => {
  const logged = new Set<string>();
  /** The hosted service and LangGraph's stores also ignore these fields. */
  const logIgnored = (what: string): void => {
    if (!logged.has(what)) logger.warn(`${what}, which is ignored: 'store.index' is not configured`);
    logged.add(what);
  };

  const vectorsOf = async (texts: ReadonlyMap<string, string>): Promise<Map<string, string>> => {
    const made = (await index?.embedder.documents([...texts.values()])) ?? [];
    return new Map([...texts.keys()].map((hash, place) => [hash, made[place]!]));
  };

  const withVectors = async (searches: readonly ItemQuery[]): Promise<readonly ItemSearch[]> => {
    const queries = [...new Set(searches.flatMap(({ query = "" }) => (query === "" ? [] : [query])))];
    if (queries.length === 0) return searches;
    if (index === undefined) {
      logIgnored("a search of the store has a 'query'");
      return searches;
    }
    const { embed, embedder } = index;
    const vectorOf = new Map(
      await Promise.all(queries.map(async (query) => [query, await embedder.query(query)] as const)),
    );
    return searches.map((search) => {
      const vector = vectorOf.get(search.query ?? "");
      return vector === undefined ? search : { ...search, near: { vector, embeddedBy: embed } };
    });
  };

  return {
    /** Throws `unavailable` if the embedding model fails. */
    async put(visibility: Visibility<"store">, items: readonly ItemToStore[]): Promise<void> {
      const namesPaths = index === undefined && items.some((item) => Array.isArray(item.index));
      if (namesPaths) logIgnored("an item of the store has an 'index' with paths");
      if (vectors === undefined) return await repository.put(visibility, items);
      const texts = new Map<string, string>();
      const textsOfItems = items.flatMap(({ namespace, key, value, index: paths = index?.fields }) => {
        if (index === undefined || paths === undefined || paths === false) return [];
        return textsOf(value(), paths).map((text): TextOfItem => {
          const hash = hashOf(index.embed, text);
          texts.set(hash, text);
          return { namespace, key, hash };
        });
      });
      const embed = index?.embed ?? "";
      const indexed = items.filter((item) => item.index !== false);
      const known = textsOfItems.length === 0 ? [] : await vectors.knownTexts(visibility, indexed);
      const nameOf = ({ namespace, key, hash }: TextOfItem) => JSON.stringify([namespace, key, hash]);
      const knownNames = new Set(known.map(nameOf));
      const unknown = new Set(
        textsOfItems.filter((text) => !knownNames.has(nameOf(text))).map(({ hash }) => hash),
      );
      const fresh = await vectorsOf(new Map([...texts].filter(([hash]) => unknown.has(hash))));
      if (await vectors.put(visibility, items, textsOfItems, fresh, embed)) return;
      // Another writer has just replaced an item whose vectors this put wanted to keep. With all vectors, none can be
      // missing.
      await vectors.put(visibility, items, textsOfItems, await vectorsOf(texts), embed);
    },

    /**
     * With a query and semantic search: indexed items with scores, the most similar first; throws `unavailable`.
     * Otherwise: the last updated first.
     */
    search: async (visibility: Visibility<"store">, searches: readonly ItemQuery[]) =>
      await repository.search(visibility, await withVectors(searches)),

    /** For clients; see `StoreRepository`. */
    async searchPage(visibility: Visibility<"store">, search: ItemQuery, signal?: AbortSignal) {
      const [prepared = search] = await withVectors([search]);
      return await repository.searchPage(visibility, prepared, signal);
    },
  };
};

export type Items = ReturnType<typeof createItems>;
