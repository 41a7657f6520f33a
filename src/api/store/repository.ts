import type { StoreItemRow } from "../../platform/database/tables.ts";
import type { Visibility } from "../../access/visibility.ts";
import { forbidden, invalid } from "../../platform/domain/errors.ts";
import type { BoundedReads, PageColumns } from "../../platform/database/bounded-reads.ts";
import type { Queryable } from "../../platform/database/database.ts";
import type { Fragment } from "../../platform/database/statement.ts";
import type { ItemAddress } from "./schemas.ts";
import {
  DELETE_EXPIRED,
  DELETE_ITEMS,
  filterable,
  GET_ITEMS,
  LIST_NAMESPACES,
  PUT_ITEMS,
  REFRESH_EXPIRY,
  SEARCH,
  SEARCH_BY_MEANING,
  type FilterCondition,
} from "./statements.ts";

export interface FoundItem extends Pick<
  StoreItemRow,
  "namespace" | "key" | "value" | "created_at" | "updated_at"
> {
  /** Minutes without a read or write, and the expiry before this read, which may move it. Undefined: never expires. */
  expiry?: { ttlMinutes: number; expiresAt: Date };
  /** Cosine similarity, at most 1; only of a semantic search. */
  score?: number;
}

interface FoundRow extends Omit<FoundItem, "expiry"> {
  ordinal: number;
  /** `ttl_minutes` and `expires_at` are both null or both set. */
  ttl_minutes: number | null;
  expires_at: Date | null;
}

const foundItemOf = (row: FoundRow): FoundItem => {
  const { namespace, key, value, created_at, updated_at, ttl_minutes, expires_at, score } = row;
  return {
    ...{ namespace, key, value, created_at, updated_at },
    ...(ttl_minutes !== null &&
      expires_at !== null && { expiry: { ttlMinutes: ttl_minutes, expiresAt: expires_at } }),
    ...(score !== undefined && { score }),
  };
};

export interface NewItem extends ItemAddress {
  /** PostgreSQL must be able to store it. */
  valueJson: string;
  /** Undefined: never expires. */
  ttlMinutes: number | undefined;
}

export interface ItemRead extends ItemAddress {
  /** Whether the read restarts the time to live. */
  refreshTtl: boolean;
}

export interface ItemSearch {
  namespacePrefix: string[];
  conditions: FilterCondition[];
  limit: number;
  offset: number;
  refreshTtl: boolean;
  /** Needs the table of vectors. */
  near?: {
    /** In pgvector's text form. */
    vector: string;
    /** The model: only vectors of one model can be compared. */
    embeddedBy: string;
  };
}

export interface NamespaceMatch {
  matchType: "prefix" | "suffix";
  /** Labels; `*` matches any label. */
  path: string[];
}

export interface NamespaceSearch {
  matches: NamespaceMatch[];
  /** Labels to keep; undefined means all. */
  maxDepth: number | undefined;
  limit: number;
  offset: number;
}

/** The largest integer of SQL. */
const ANY_DEPTH = 2_147_483_647;
const BIGINT_SAFE_AT_MOST = Number.MAX_SAFE_INTEGER / 4;

/** Callers within the process may pass Infinity. */
const wholeCount = (value: number): number =>
  Number.isNaN(value) ? 0 : Math.trunc(Math.min(Math.max(value, 0), BIGINT_SAFE_AT_MOST));

/** `upper` is exclusive. */
const rangeOf = (
  prefix: readonly string[],
): { lower: readonly string[]; upper: readonly string[] | null } => ({
  lower: prefix,
  upper: prefix.length === 0 ? null : [...prefix.slice(0, -1), `${prefix.at(-1)}\u0001`],
});

/** The labels with which every found namespace begins. */
const leadingLabels = (matches: readonly NamespaceMatch[]): string[] =>
  matches
    .filter(({ matchType }) => matchType === "prefix")
    .map(({ path }) => (path.includes("*") ? path.slice(0, path.indexOf("*")) : path))
    .reduce((longest, labels) => (labels.length > longest.length ? labels : longest), [] as string[]);

const findNamespaces = async (
  queryable: Pick<Queryable, "query">,
  visible: Fragment,
  { matches, maxDepth, limit, offset }: NamespaceSearch,
): Promise<string[][]> => {
  const count = wholeCount(limit);
  if (count === 0) return [];
  const { lower, upper } = rangeOf(leadingLabels(matches));
  const skipped = wholeCount(offset);
  const search = {
    lower,
    conditions: JSON.stringify(
      matches.map(({ matchType, path }) => ({ suffix: matchType === "suffix", path })),
    ),
    depth: Math.min(maxDepth ?? ANY_DEPTH, ANY_DEPTH),
    from: skipped,
    to: skipped + count,
    visible,
  };
  const rows =
    upper === null
      ? await LIST_NAMESPACES.everywhere.query<{ namespace: string[] }>(queryable, search)
      : await LIST_NAMESPACES.inRange.query<{ namespace: string[] }>(queryable, { ...search, upper });
  return rows.map(({ namespace }) => namespace);
};

const wantedOf = ({ namespacePrefix, conditions, limit, offset, near }: ItemSearch, ordinal: number) => ({
  ordinal,
  ...rangeOf(namespacePrefix),
  conditions: conditions.length === 0 ? null : conditions,
  max_items: wholeCount(limit),
  skipped_items: wholeCount(offset),
  embedded_by: near?.embeddedBy,
  query: near?.vector,
});

const placeOf = ({ upper }: ReturnType<typeof wantedOf>) => (upper === null ? "everywhere" : "inRange");

/** The filter of `Auth` applies to the item and its address: see `filterable`. */
const filtersOf = ({ encryption }: Queryable, visibility: Visibility<"store">) => ({
  visible: visibility.on(filterable("item", encryption.isOn)),
  allowed: visibility.on(filterable("wanted", encryption.isOn)),
});

/** Addresses must be unique. Throws `forbidden` if the filter excludes a new or a replaced item. */
export const putItems = async (
  database: Queryable,
  visibility: Visibility<"store">,
  items: readonly NewItem[],
): Promise<void> => {
  if (items.length === 0) return;
  const rows = items.map(({ namespace, key, valueJson, ttlMinutes }) => {
    const address = JSON.stringify({ namespace, key, ttl_minutes: ttlMinutes ?? null });
    const value = database.encryption.stored("store_items", "value", valueJson, { namespace, key });
    return `${address.slice(0, -1)},"value":${value}}`;
  });
  const operations = `[${rows.join(",")}]`;
  const stored = await PUT_ITEMS.query(database, { operations, ...filtersOf(database, visibility) });
  if (stored.length < items.length) throw forbidden("You may not store this item here.");
};

/**
 * Methods take lists, because LangGraph passes all operations of a tick at once. A list is one JSON parameter, so one
 * prepared statement serves any length.
 */
export class StoreRepository {
  readonly #database: Queryable & BoundedReads;

  constructor(database: Queryable & BoundedReads) {
    this.#database = database;
  }

  #visible(visibility: Visibility<"store">): Fragment {
    return filtersOf(this.#database, visibility).visible;
  }

  #assertUnfiltered({ conditions }: ItemSearch): void {
    if (!this.#database.encryption.isOn || conditions.length === 0) return;
    throw invalid("'filter': the values of items are encrypted, so nothing can be found by them.");
  }

  async #refreshExpiry(
    rows: readonly FoundRow[],
    refreshes: (ordinal: number) => boolean | undefined,
  ): Promise<void> {
    const addresses = rows
      .filter(({ expires_at, ordinal }) => expires_at !== null && refreshes(ordinal))
      .map(({ namespace, key }) => ({ namespace, key }));
    if (addresses.length > 0)
      await REFRESH_EXPIRY.query(this.#database, { operations: JSON.stringify(addresses) });
  }

  /** In the order of the addresses. */
  async get(visibility: Visibility<"store">, reads: readonly ItemRead[]): Promise<(FoundItem | undefined)[]> {
    const items: (FoundItem | undefined)[] = reads.map(() => undefined);
    if (reads.length === 0) return items;
    const wanted = reads.map(({ namespace, key }, ordinal) => ({ ordinal, namespace, key }));
    const source = { operations: JSON.stringify(wanted), visible: this.#visible(visibility) };
    const rows = await GET_ITEMS.query<FoundRow>(this.#database, source);
    for (const row of this.#database.encryption.decryptedRows("store_items", rows))
      items[row.ordinal] = foundItemOf(row);
    await this.#refreshExpiry(rows, (ordinal) => reads[ordinal]?.refreshTtl);
    return items;
  }

  /** The nearest first, or the last updated first. */
  async search(visibility: Visibility<"store">, searches: readonly ItemSearch[]): Promise<FoundItem[][]> {
    const found: FoundItem[][] = searches.map(() => []);
    for (const search of searches) this.#assertUnfiltered(search);
    const wanted = searches.map(wantedOf);
    const run = async (asked: typeof SEARCH.inRange.items, group: typeof wanted): Promise<void> => {
      if (group.length === 0) return;
      const source = { operations: JSON.stringify(group), visible: this.#visible(visibility) };
      const rows = await asked.query<FoundRow>(this.#database, source);
      for (const row of this.#database.encryption.decryptedRows("store_items", rows))
        found[row.ordinal]!.push(foundItemOf(row));
      await this.#refreshExpiry(rows, (ordinal) => searches[ordinal]?.refreshTtl);
    };
    for (const place of ["inRange", "everywhere"] as const) {
      const group = wanted.filter((one) => placeOf(one) === place);
      await run(
        SEARCH[place].items,
        group.filter(({ query }) => query === undefined),
      );
      for (const one of group.filter(({ query }) => query !== undefined))
        await run(SEARCH_BY_MEANING[place].items, [one]);
    }
    return found;
  }

  /**
   * A bounded read (platform/database/bounded-reads.ts). `isCut`: the page ended early, because it would grow too
   * large.
   */
  async searchPage(
    visibility: Visibility<"store">,
    search: ItemSearch,
    signal?: AbortSignal,
  ): Promise<{ items: FoundItem[]; isCut: boolean }> {
    this.#assertUnfiltered(search);
    const wanted = wantedOf(search, 0);
    const { page } = (wanted.query === undefined ? SEARCH : SEARCH_BY_MEANING)[placeOf(wanted)];
    const source = { operations: JSON.stringify([wanted]), visible: this.#visible(visibility) };
    const { text, values } = page.compile(source);
    const rows = await this.#database.boundedRead<FoundRow & PageColumns>(text, values, signal);
    await this.#refreshExpiry(rows, () => search.refreshTtl);
    const items = this.#database.encryption.decryptedRows("store_items", rows).map(foundItemOf);
    return { items, isCut: rows.length < Number(rows[0]?.page_rows ?? 0) };
  }

  put(visibility: Visibility<"store">, items: readonly NewItem[]): Promise<void> {
    return putItems(this.#database, visibility, items);
  }

  /** Missing items are no error. */
  async delete(visibility: Visibility<"store">, addresses: readonly ItemAddress[]): Promise<void> {
    if (addresses.length === 0) return;
    const operations = JSON.stringify(addresses.map(({ namespace, key }) => ({ namespace, key })));
    await DELETE_ITEMS.query(this.#database, { operations, visible: this.#visible(visibility) });
  }

  /** In byte order of their labels. With `bounded`, a bounded read. */
  async listNamespaces(
    visibility: Visibility<"store">,
    search: NamespaceSearch,
    bounded?: { signal: AbortSignal | undefined },
  ): Promise<string[][]> {
    const database = this.#database;
    const reads: Pick<Queryable, "query"> =
      bounded === undefined
        ? database
        : { query: (text, values) => database.boundedRead(text, values, bounded.signal) };
    return await findNamespaces(reads, this.#visible(visibility), search);
  }

  /** Deletes the longest expired items first; returns their number. */
  async deleteExpired(_visibility: Visibility<"store">, limit: number): Promise<number> {
    return (await DELETE_EXPIRED.query(this.#database, { limit })).length;
  }
}
