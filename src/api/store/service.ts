import type { Authorize } from "../../access/authorize.ts";
import { THE_SERVER, type Caller } from "../../access/caller.ts";
import type { Visibility } from "../../access/visibility.ts";
import {
  keyComplaint,
  labelsComplaint,
  namespaceComplaint,
  type ItemDelete,
  type ItemGet,
  type ItemPut,
  type ItemRecord,
  type ItemSearchRequest,
  type NamespacesRequest,
} from "./schemas.ts";
import { invalid } from "../../platform/domain/errors.ts";
import { timestamp } from "../../platform/lib/timestamps.ts";
import type { StoreExpiry } from "../../graphs/project/expiry.ts";
import { filterConditions } from "./statements.ts";
import type { Items } from "./items.ts";
import type { FoundItem, NamespaceMatch, StoreRepository } from "./repository.ts";
import { logFailure } from "../../platform/database/outages.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { startPeriodic } from "../../platform/lib/periodic.ts";

interface StoreServiceOptions {
  repository: StoreRepository;
  authorize: Authorize;
  items: Items;
  expiry: StoreExpiry;
}

const recordOf = (item: FoundItem): ItemRecord => ({
  namespace: item.namespace,
  key: item.key,
  value: item.value as ItemRecord["value"],
  created_at: timestamp(item.created_at),
  updated_at: timestamp(item.updated_at),
  ...(item.score === undefined ? {} : { score: item.score }),
  ...(item.expiry === undefined
    ? {}
    : { ttl: item.expiry.ttlMinutes, expires_at: timestamp(item.expiry.expiresAt) }),
});

const EXPIRED = { namespace: [], key: "" };

/** A handler may have moved the request to another namespace. Throws `invalid` if that breaks the rules for clients. */
const granted = <Value extends { namespace: string[]; key?: string }>({
  value,
}: Visibility<"store", Value>): Value => {
  const isPlace = "value" in value;
  const complaint =
    (isPlace ? namespaceComplaint(value.namespace) : labelsComplaint(value.namespace)) ??
    (value.key === undefined ? undefined : keyComplaint(value.key));
  if (complaint !== undefined) throw invalid(`'namespace' or 'key': ${complaint}.`);
  return value;
};

export const createStoreService = ({ repository, authorize, items, expiry }: StoreServiceOptions) => ({
  /** `index` is ignored without semantic search. Throws `unavailable` if the texts can't be embedded. */
  async put(caller: Caller, { index, ttl, ...asked }: ItemPut): Promise<void> {
    const visibility = await authorize(caller, "store", "put", asked);
    const { namespace, key, value } = granted(visibility);
    const ttlMinutes = ttl === null ? undefined : (ttl ?? expiry.defaultMinutes);
    const valueJson = JSON.stringify(value);
    await items.put(visibility, [
      { namespace, key, valueJson, ttlMinutes, value: () => value, index: index ?? undefined },
    ]);
  },

  async get(caller: Caller, { refresh_ttl, ...asked }: ItemGet): Promise<ItemRecord | undefined> {
    const visibility = await authorize(caller, "store", "get", asked);
    const { namespace, key } = granted(visibility);
    const refreshTtl = refresh_ttl ?? expiry.refreshOnRead;
    const [item] = await repository.get(visibility, [{ namespace, key, refreshTtl }]);
    return item === undefined ? undefined : recordOf(item);
  },

  async delete(caller: Caller, { namespace: asked = [], key: askedKey }: ItemDelete): Promise<void> {
    const visibility = await authorize(caller, "store", "delete", { namespace: asked, key: askedKey });
    const { namespace, key } = granted(visibility);
    await repository.delete(visibility, [{ namespace, key }]);
  },

  /**
   * The last updated first, or the most similar to `query`. `next` is undefined unless the page was cut. Throws
   * `invalid` for an unknown operator, `unavailable` if the query can't be embedded.
   */
  async search(
    caller: Caller,
    { namespace_prefix: prefix = [], filter, limit, offset, query, refresh_ttl }: ItemSearchRequest,
    signal?: AbortSignal,
  ): Promise<{ items: ItemRecord[]; next: number | undefined }> {
    const asked = { namespace: prefix, filter, limit, offset, query };
    const visibility = await authorize(caller, "store", "search", asked);
    const namespacePrefix = granted(visibility).namespace;
    const conditions = filterConditions(filter);
    const refreshTtl = refresh_ttl ?? expiry.refreshOnRead;
    const search = { namespacePrefix, conditions, limit, offset, refreshTtl, query };
    const { items: found, isCut } = await items.searchPage(visibility, search, signal);
    return { items: found.map(recordOf), next: isCut ? offset + found.length : undefined };
  },

  async listNamespaces(
    caller: Caller,
    { prefix: asked = [], suffix: askedSuffix, max_depth: maxDepth, limit, offset }: NamespacesRequest,
    signal?: AbortSignal,
  ): Promise<string[][]> {
    const visibility = await authorize(caller, "store", "list_namespaces", {
      ...{ namespace: asked, suffix: askedSuffix, max_depth: maxDepth, limit, offset },
    });
    const { namespace: prefix, suffix } = granted(visibility);
    const matches: NamespaceMatch[] = [];
    if (prefix.length > 0) matches.push({ matchType: "prefix", path: prefix });
    if (suffix !== undefined) matches.push({ matchType: "suffix", path: suffix });
    return await repository.listNamespaces(visibility, { matches, maxDepth, limit, offset }, { signal });
  },

  async deleteExpired(caller: Caller, limit: number): Promise<number> {
    return await repository.deleteExpired(await authorize(caller, "store", "delete", EXPIRED), limit);
  },
});

export type StoreService = ReturnType<typeof createStoreService>;

/** Frequent, small sweeps stay short beside live traffic. */
const SWEEP_MS = 10_000;
const EXPIRED_PER_SWEEP = 5_000;
/** Rarer sweeps gain nothing, because expired items are invisible. */
const SWEEP_AT_MOST_MS = 24 * 3_600_000;

export const startItemExpiry = (
  store: Pick<StoreService, "deleteExpired">,
  everyMinutes: number | undefined,
  logger: Logger,
): { close(): Promise<void> } =>
  startPeriodic({
    everyMs: everyMinutes === undefined ? SWEEP_MS : Math.min(everyMinutes * 60_000, SWEEP_AT_MOST_MS),
    async work() {
      while ((await store.deleteExpired(THE_SERVER, EXPIRED_PER_SWEEP)) === EXPIRED_PER_SWEEP);
    },
    onError: logFailure(logger, "expired items could not be removed"),
  });
