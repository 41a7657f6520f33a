import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useConnection } from "../server/connection.tsx";

/** An item, as the API gives it. */
export interface StoreItem {
  namespace: string[];
  key: string;
  value: Record<string, unknown>;
  created_at: string;
  updated_at: string;
  /** Of one that expires: the minutes for which it stays unread, and when that is. */
  ttl?: number;
  expires_at?: string;
  /** Of a search by meaning, where the server has an index for that. */
  score?: number;
}

export interface ItemFilter {
  prefix: readonly string[];
  /** What fields have to be; undefined for anything. */
  fields: Record<string, unknown> | undefined;
  meaning: string;
  page: number;
}

export const PAGE_SIZE = 20;
/** A page of the server ends at 16 MiB: after a large one there may be more, however few items it has. */
const LARGE_PAGE_CHARACTERS = 4_000_000;

/** One page of the items at and below a namespace. Looking at them does not prolong their lives. */
export const useItems = ({ prefix, fields, meaning, page }: ItemFilter) => {
  const { request } = useConnection();
  return useQuery({
    queryKey: ["store", "items", { prefix, fields, meaning, page }],
    placeholderData: keepPreviousData,
    queryFn: async () => {
      const { items } = await request<{ items: StoreItem[] }>("POST", "/store/items/search", {
        ...{ namespace_prefix: prefix, limit: PAGE_SIZE + 1, offset: page * PAGE_SIZE, refresh_ttl: false },
        ...(fields !== undefined && { filter: fields }),
        ...(meaning !== "" && { query: meaning }),
      });
      const isLarge = items.length > 0 && JSON.stringify(items).length > LARGE_PAGE_CHARACTERS;
      return {
        items: items.slice(0, PAGE_SIZE),
        hasMore: items.length > PAGE_SIZE,
        isTruncated: isLarge && items.length <= PAGE_SIZE,
      };
    },
  });
};

const NAMESPACES_PER_PAGE = 100;

/** The labels that follow a prefix, a page at a time; `isEnd` if there are no more. */
export const useNamespaces = (prefix: readonly string[], page: number) => {
  const { client } = useConnection();
  return useQuery({
    queryKey: ["store", "namespaces", { prefix, page }],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      const { namespaces } = await client.store.listNamespaces({
        ...(prefix.length > 0 && { prefix: [...prefix] }),
        maxDepth: prefix.length + 1,
        limit: NAMESPACES_PER_PAGE + 1,
        offset: page * NAMESPACES_PER_PAGE,
        signal,
      });
      return {
        // One that is the prefix itself holds items, and leads nowhere else.
        namespaces: namespaces.slice(0, NAMESPACES_PER_PAGE).filter(({ length }) => length > prefix.length),
        hasMore: namespaces.length > NAMESPACES_PER_PAGE,
      };
    },
  });
};

export interface ItemAddress {
  namespace: readonly string[];
  key: string;
}

const addressQuery = ({ namespace, key }: ItemAddress): string =>
  new URLSearchParams({ namespace: namespace.join("."), key, refresh_ttl: "false" }).toString();

/** As it is now; null if it is gone. */
export const useItem = (address: ItemAddress) => {
  const { request } = useConnection();
  return useQuery({
    queryKey: ["store", "item", address],
    queryFn: () => request<StoreItem | null>("GET", `/store/items?${addressQuery(address)}`),
  });
};

export interface NewItem extends ItemAddress {
  value: unknown;
  /** Minutes; null for ever, undefined for what the server does without being told. */
  ttl: number | null | undefined;
  /** Whether there must be none yet. */
  isNew: boolean;
}

export const usePutItem = (onSuccess: (item: NewItem) => void) => {
  const { request } = useConnection();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async ({ isNew, ...item }: NewItem) => {
      if (isNew && (await request<StoreItem | null>("GET", `/store/items?${addressQuery(item)}`)) !== null)
        throw new Error("An item with this key exists already. Open it to edit it.");
      await request("PUT", "/store/items", item);
    },
    onSuccess: async (_, item) => {
      onSuccess(item);
      await queries.invalidateQueries({ queryKey: ["store"] });
    },
  });
};

export const useDeleteItem = (onSuccess: () => void) => {
  const { request } = useConnection();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ namespace, key }: ItemAddress) => request("DELETE", "/store/items", { namespace, key }),
    onSuccess: async () => {
      onSuccess();
      await queries.invalidateQueries({ queryKey: ["store"] });
    },
  });
};
