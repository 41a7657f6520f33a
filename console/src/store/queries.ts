import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useConnection } from "../server/connection.tsx";

export interface StoreItem {
  namespace: string[];
  key: string;
  value: Record<string, unknown>;
  created_at: string;
  updated_at: string;
  /** Minutes, counted from the last read or write. */
  ttl?: number;
  expires_at?: string;
  /** Only of a semantic search. */
  score?: number;
}

export interface ItemFilter {
  prefix: readonly string[];
  fields: Record<string, unknown> | undefined;
  meaning: string;
  page: number;
}

export const PAGE_SIZE = 20;
/** The server ends a page at 16 MiB. */
const LARGE_PAGE_CHARACTERS = 4_000_000;

/** Reading here does not extend the time to live. */
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

/** Null if the item does not exist. */
export const useItem = (address: ItemAddress) => {
  const { request } = useConnection();
  return useQuery({
    queryKey: ["store", "item", address],
    queryFn: () => request<StoreItem | null>("GET", `/store/items?${addressQuery(address)}`),
  });
};

export interface NewItem extends ItemAddress {
  value: unknown;
  /** Minutes; null: no expiry, undefined: the default of the server. */
  ttl: number | null | undefined;
  /** Fail if the item exists. */
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
