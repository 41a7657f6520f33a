import {
  BaseStore,
  InvalidNamespaceError,
  type GetOperation,
  type Item,
  type ListNamespacesOperation,
  type MatchCondition,
  type Operation,
  type OperationResults,
  type PutOperation,
  type SearchItem,
  type SearchOperation,
} from "@langchain/langgraph-checkpoint";
import type { Visibility } from "../../access/visibility.ts";
import { invalid } from "../../platform/domain/errors.ts";
import { storableObject } from "../../platform/domain/json-schemas.ts";
import { toWireJson } from "../../state/values/wire-json.ts";
import { keyComplaint, namespaceComplaint, textComplaint } from "./schemas.ts";
import type { StoreExpiry } from "../../graphs/project/expiry.ts";
import { filterConditions } from "./statements.ts";
import type { ItemQuery, Items, ItemToStore } from "./items.ts";
import type { FoundItem, ItemRead, NamespaceSearch, StoreRepository } from "./repository.ts";

export interface PostgresStoreOptions {
  visibility: Visibility<"store">;
  repository: StoreRepository;
  items: Items;
  expiry: StoreExpiry;
}

const itemOf = (item: FoundItem): Item => ({
  namespace: item.namespace,
  key: item.key,
  value: item.value as Item["value"],
  createdAt: item.created_at,
  updatedAt: item.updated_at,
});

const searchItemOf = (item: FoundItem): SearchItem =>
  item.score === undefined ? itemOf(item) : { ...itemOf(item), score: item.score };

const SEARCHED_BY_DEFAULT = 10;
/** As in LangGraph. */
const LISTED_BY_DEFAULT = 100;

/**
 * LangGraph's store for nodes (`config.store`, `runtime.store`). `stop()` closes nothing, because the server owns the
 * database.
 */
export class PostgresStore extends BaseStore {
  readonly #options: PostgresStoreOptions;

  constructor(options: PostgresStoreOptions) {
    super();
    this.#options = options;
  }

  /**
   * Reads see the state before the batch, and the last put to an address wins, as in LangGraph's own stores. One
   * invalid operation refuses the whole batch.
   *
   * Throws `InvalidNamespaceError` by LangGraph's rules, `invalid` for text that PostgreSQL can't store and for an
   * unknown operator, `unavailable` if the embedding model fails, TypeError for a value without JSON.
   */
  override async batch<Operations extends Operation[]>(
    operations: Operations,
  ): Promise<OperationResults<Operations>> {
    const results: unknown[] = operations.map(() => null);
    const gets: { index: number; read: ItemRead }[] = [];
    const searches: { index: number; search: ItemQuery }[] = [];
    const listings: { index: number; query: NamespaceSearch }[] = [];
    const writes = new Map<string, PutOperation>();
    operations.forEach((operation, index) => {
      if ("namespacePrefix" in operation) searches.push({ index, search: this.#searchOf(operation) });
      else if ("value" in operation) {
        writes.set(JSON.stringify([...operation.namespace, operation.key]), operation);
      } else if ("key" in operation) gets.push({ index, read: this.#readOf(operation) });
      else listings.push({ index, query: namespaceSearchOf(operation) });
    });
    const puts = [...writes.values()]
      .filter(({ value }) => value !== null)
      .map((put) => this.#newItemOf(put));
    const deletes = [...writes.values()].filter(({ value }) => value === null);
    for (const { namespace, key } of deletes) assertAddressable(namespace, key);

    const { visibility, repository, items } = this.#options;
    await Promise.all([
      repository
        .get(
          visibility,
          gets.map(({ read }) => read),
        )
        .then((found) => {
          found.forEach((item, place) => {
            results[gets[place]!.index] = item === undefined ? null : itemOf(item);
          });
        }),
      items
        .search(
          visibility,
          searches.map(({ search }) => search),
        )
        .then((found) => {
          found.forEach((items, place) => {
            results[searches[place]!.index] = items.map(searchItemOf);
          });
        }),
      ...listings.map(async ({ index, query }) => {
        results[index] = await repository.listNamespaces(visibility, query);
      }),
    ]);
    await items.put(visibility, puts);
    await repository.delete(visibility, deletes);
    return results as OperationResults<Operations>;
  }

  /* Newer base classes refuse colons in labels. The API takes colons, so only the rules of `batch` apply. */

  override async get(namespace: string[], key: string): Promise<Item | null> {
    const [item] = await this.batch<[GetOperation]>([{ namespace, key }]);
    return item;
  }

  override async search(
    namespacePrefix: string[],
    options: Omit<SearchOperation, "namespacePrefix"> = {},
  ): Promise<SearchItem[]> {
    const [items] = await this.batch<[SearchOperation]>([{ ...options, namespacePrefix }]);
    return items;
  }

  override async put(
    namespace: string[],
    key: string,
    value: Record<string, unknown>,
    index?: PutOperation["index"],
  ): Promise<void> {
    await this.batch<[PutOperation]>([{ namespace, key, value, index }]);
  }

  override async delete(namespace: string[], key: string): Promise<void> {
    await this.batch<[PutOperation]>([{ namespace, key, value: null }]);
  }

  override async listNamespaces({
    prefix,
    suffix,
    maxDepth,
    limit = LISTED_BY_DEFAULT,
    offset = 0,
  }: Parameters<BaseStore["listNamespaces"]>[0] = {}): Promise<string[][]> {
    const matchConditions: MatchCondition[] = [];
    if (prefix !== undefined) matchConditions.push({ matchType: "prefix", path: prefix });
    if (suffix !== undefined) matchConditions.push({ matchType: "suffix", path: suffix });
    const [namespaces] = await this.batch<[ListNamespacesOperation]>([
      { matchConditions, maxDepth, limit, offset },
    ]);
    return namespaces;
  }

  #readOf({ namespace, key }: GetOperation): ItemRead {
    assertAddressable(namespace, key);
    return { namespace, key, refreshTtl: this.#options.expiry.refreshOnRead };
  }

  #searchOf({ namespacePrefix, filter, limit, offset, query }: SearchOperation): ItemQuery {
    assertLabels("namespacePrefix", namespacePrefix);
    return {
      namespacePrefix,
      conditions: filterConditions(filter),
      limit: limit ?? SEARCHED_BY_DEFAULT,
      offset: offset ?? 0,
      refreshTtl: this.#options.expiry.refreshOnRead,
      query,
    };
  }

  #newItemOf({ namespace, key, value, index }: PutOperation): ItemToStore {
    const complaint = namespaceComplaint(namespace);
    if (complaint !== undefined) {
      throw new InvalidNamespaceError(`The namespace [${namespace.join(", ")}] of an item ${complaint}.`);
    }
    assertKey(key);
    if (value === undefined) throw invalid(`The value of the item '${key}' is undefined.`);
    const valueJson = toWireJson(value);
    assertStorable(key, valueJson);
    const ttlMinutes = this.#options.expiry.defaultMinutes;
    return { namespace, key, valueJson, ttlMinutes, value: () => JSON.parse(valueJson) as unknown, index };
  }
}

const namespaceSearchOf = (operation: ListNamespacesOperation): NamespaceSearch => {
  const { matchConditions = [], maxDepth, limit, offset } = operation;
  for (const { matchType, path } of matchConditions) assertLabels(matchType, path);
  return { matches: matchConditions, maxDepth, limit: limit ?? Infinity, offset: offset ?? 0 };
};

const assertLabels = (name: string, labels: readonly unknown[]): void => {
  const complaint = textComplaint(labels);
  if (complaint !== undefined) throw invalid(`'${name}': ${complaint}.`);
};

const assertKey = (key: unknown): void => {
  const complaint = keyComplaint(key);
  if (complaint !== undefined) throw invalid(`The key of an item ${complaint}.`);
};

const assertAddressable = (namespace: readonly unknown[], key: unknown): void => {
  assertLabels("namespace", namespace);
  assertKey(key);
};

/** JSON escapes NUL and halves of surrogate pairs, so only values with such escapes are parsed. */
const assertStorable = (key: string, valueJson: string): void => {
  if (!/\\u(?:0000|d[89a-f])/.test(valueJson)) return;
  if (storableObject.safeParse({ value: JSON.parse(valueJson) as unknown }).success) return;
  throw invalid(
    `The value of the item '${key}' holds a NUL character or half a surrogate pair, which can't be stored.`,
  );
};
