import { timestamp } from "../lib/timestamps.ts";
import type { StoreExpiry } from "./expiry.ts";
import { filterConditions } from "./filters.ts";
import type { NamespaceMatch, StoredItem, StoreRepository } from "./repository.ts";
import type {
  ItemDelete,
  ItemGet,
  ItemPut,
  ItemRecord,
  ItemSearchRequest,
  NamespacesRequest,
} from "./schemas.ts";
import { assertNoIndex, assertNoQuery } from "./semantic-search.ts";

export interface StoreServiceOptions {
  repository: StoreRepository;
  expiry: StoreExpiry;
}

export interface StoreService {
  /** Stores an item, or replaces it with its time to live. Throws `invalid` if it's to be indexed. */
  put(request: ItemPut): Promise<void>;
  get(request: ItemGet): Promise<ItemRecord | undefined>;
  delete(request: ItemDelete): Promise<void>;
  /** Items, the last updated first. Throws `invalid` for an unknown operator and for a `query`. */
  search(request: ItemSearchRequest): Promise<ItemRecord[]>;
  listNamespaces(request: NamespacesRequest): Promise<string[][]>;
  /** The sweep: removes up to `limit` items whose time has passed; returns how many. */
  deleteExpired(limit: number): Promise<number>;
}

const recordOf = (item: StoredItem): ItemRecord => ({
  namespace: item.namespace,
  key: item.key,
  value: item.value as ItemRecord["value"],
  created_at: timestamp(item.created_at),
  updated_at: timestamp(item.updated_at),
});

/** The store as clients use it over HTTP. Graphs use the same items through `PostgresStore`. */
export const createStoreService = ({ repository, expiry }: StoreServiceOptions): StoreService => ({
  async put({ namespace, key, value, index, ttl }) {
    assertNoIndex(index);
    const ttlMinutes = ttl === null ? undefined : (ttl ?? expiry.defaultMinutes);
    await repository.put([{ namespace, key, valueJson: JSON.stringify(value), ttlMinutes }]);
  },

  async get({ namespace, key, refresh_ttl }) {
    const refreshTtl = refresh_ttl ?? expiry.refreshOnRead;
    const [item] = await repository.get([{ namespace, key, refreshTtl }]);
    return item === undefined ? undefined : recordOf(item);
  },

  async delete({ namespace = [], key }) {
    await repository.delete([{ namespace, key }]);
  },

  async search({ namespace_prefix: namespacePrefix = [], filter, limit, offset, query, refresh_ttl }) {
    assertNoQuery(query);
    const conditions = filterConditions(filter);
    const refreshTtl = refresh_ttl ?? expiry.refreshOnRead;
    const [items] = await repository.search([{ namespacePrefix, conditions, limit, offset, refreshTtl }]);
    return (items ?? []).map(recordOf);
  },

  async listNamespaces({ prefix, suffix, max_depth: maxDepth, limit, offset }) {
    const matches: NamespaceMatch[] = [];
    if (prefix !== undefined) matches.push({ matchType: "prefix", path: prefix });
    if (suffix !== undefined) matches.push({ matchType: "suffix", path: suffix });
    return await repository.listNamespaces({ matches, maxDepth, limit, offset });
  },

  deleteExpired: (limit) => repository.deleteExpired(limit),
});
