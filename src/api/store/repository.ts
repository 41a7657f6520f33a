import type { Visibility } from "../../access/visibility.ts";
import { forbidden, invalid } from "../../platform/domain/errors.ts";
import { ITEM_JSON, decryptRow, decryptRows } from "../../platform/encryption/columns.ts";
import { LARGE_ANSWER_BYTES, type WhenLarge } from "../../platform/lib/large-answers.ts";
import { roomyPage, type BoundedReads, type PageColumns } from "../../platform/database/bounded-reads.ts";
import type { Queryable } from "../../platform/database/database.ts";
import type { ItemAddress } from "./addresses.ts";
import type { FilterCondition } from "./filters.ts";
import { foundItemOf, itemOf, type FoundItem, type FoundRow, type StoredItem } from "./found-items.ts";
import {
  DELETE_EXPIRED,
  deleteItems,
  filterable,
  getItems,
  getWeighed,
  listNamespaces,
  putItems,
  REFRESH_EXPIRY,
  search as searchItems,
  searchByMeaning,
} from "./statements.ts";

export interface NewItem extends ItemAddress {
  /** The value as JSON text, which PostgreSQL can store. */
  valueJson: string;
  /** Minutes without a read or a write after which the item expires; undefined for never. */
  ttlMinutes: number | undefined;
}

export interface ItemRead extends ItemAddress {
  /** Whether an item with a time to live starts it anew. */
  refreshTtl: boolean;
}

export interface ItemSearch {
  namespacePrefix: string[];
  conditions: FilterCondition[];
  limit: number;
  offset: number;
  refreshTtl: boolean;
  /** Looks for what is near to this vector; possible only where there is a table of vectors. */
  near?: {
    /** As pgvector writes it. */
    vector: string;
    /** Only vectors of the same origin can be compared. */
    embeddedBy: string;
  };
}

export interface NamespaceMatch {
  matchType: "prefix" | "suffix";
  /** Labels; `*` stands for any one. */
  path: string[];
}

export interface NamespaceSearch {
  matches: NamespaceMatch[];
  /** Labels to keep of each namespace; undefined for all. */
  maxDepth: number | undefined;
  limit: number;
  offset: number;
}

/** Every method takes the visibility that was granted for it. Its condition holds for the item: see `filterable`. */
export interface StoreRepository {
  /**
   * The items, in the order of the addresses, undefined where there is none. One statement (see below),
   * one more if values are large and `whenLarge` was awaited before they are read.
   */
  get(
    visibility: Visibility<"store">,
    reads: readonly ItemRead[],
    whenLarge?: WhenLarge,
  ): Promise<(StoredItem | undefined)[]>;
  /**
   * For each search its items: the nearest first, or the last updated first. At most two statements, and one for each vector (see below).
   */
  search(visibility: Visibility<"store">, searches: readonly ItemSearch[]): Promise<FoundItem[][]>;
  /**
   * One search of somebody outside: a bounded read (see platform/database/bounded-reads.ts), whose page ends early when it gets too
   * large. `isCut`: there are more items within the limit.
   */
  searchPage(
    visibility: Visibility<"store">,
    search: ItemSearch,
    signal?: AbortSignal,
  ): Promise<{ items: FoundItem[]; isCut: boolean }>;
  /**
   * Stores items, whole: an older value and its time to live are replaced. No address twice. One statement.
   * Throws `forbidden` if the filter does not hold for an item, or for the item in its place.
   */
  put(visibility: Visibility<"store">, items: readonly NewItem[]): Promise<void>;
  /** Removes items; it's no error if they don't exist. One statement. */
  delete(visibility: Visibility<"store">, addresses: readonly ItemAddress[]): Promise<void>;
  /** The namespaces that hold items, in byte order of their labels, none twice. */
  listNamespaces(visibility: Visibility<"store">, query: NamespaceSearch): Promise<string[][]>;
  /** The same for somebody outside: a bounded read. */
  listNamespacesFor(
    visibility: Visibility<"store">,
    query: NamespaceSearch,
    signal: AbortSignal | undefined,
  ): Promise<string[][]>;
  /** Removes up to `limit` expired items, the longest expired first; returns how many. */
  deleteExpired(visibility: Visibility<"store">, limit: number): Promise<number>;
}

/** The largest depth that SQL's integer can say. */
const ANY_DEPTH = 2_147_483_647;
const BIGINT_SAFE_AT_MOST = Number.MAX_SAFE_INTEGER / 4;

/** A count as SQL can take it: whole, not negative; callers within the process may pass Infinity for "all". */
const wholeCount = (value: number): number =>
  Number.isNaN(value) ? 0 : Math.trunc(Math.min(Math.max(value, 0), BIGINT_SAFE_AT_MOST));

/** Where everything that begins with these labels lies: from the labels themselves up to, without, the end. */
const rangeOf = (
  prefix: readonly string[],
): { lower: readonly string[]; upper: readonly string[] | null } => ({
  lower: prefix,
  upper: prefix.length === 0 ? null : [...prefix.slice(0, -1), `${prefix.at(-1)}\u0001`],
});

/** The leading labels that every namespace must have: of the longest prefix condition, up to its first `*`. */
const leadingLabels = (matches: readonly NamespaceMatch[]): string[] =>
  matches
    .filter(({ matchType }) => matchType === "prefix")
    .map(({ path }) => (path.includes("*") ? path.slice(0, path.indexOf("*")) : path))
    .reduce((longest, labels) => (labels.length > longest.length ? labels : longest), [] as string[]);

type Read = <Row>(text: string, values: unknown[]) => Promise<Row[]>;

const findNamespaces = async (
  read: Read,
  visibleTo: (values: unknown[]) => string,
  { matches, maxDepth, limit, offset }: NamespaceSearch,
): Promise<string[][]> => {
  const count = wholeCount(limit);
  if (count === 0) return [];
  const { lower, upper } = rangeOf(leadingLabels(matches));
  const skipped = wholeCount(offset);
  const values: unknown[] = [
    lower,
    JSON.stringify(matches.map(({ matchType, path }) => ({ suffix: matchType === "suffix", path }))),
    Math.min(maxDepth ?? ANY_DEPTH, ANY_DEPTH),
    skipped,
    skipped + count,
  ];
  if (upper !== null) values.push(upper);
  const text = listNamespaces(upper === null, visibleTo(values));
  const rows = await read<{ namespace: string[] }>(text, values);
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

/**
 * The store's SQL. Every method takes a list, because LangGraph hands over all operations of a tick at once, and
 * the list goes to Postgres as one JSON parameter, so that one prepared statement serves any number.
 *
 * Reads that meet items with a time to live send one statement more, which refreshes them.
 */
export const createStoreRepository = (database: Queryable, reads: BoundedReads): StoreRepository => {
  const { cipher } = database;
  const query: Read = (text, values) => database.query(text, values);
  const itemFilter = filterable("item", cipher !== undefined);
  const wantedFilter = filterable("wanted", cipher !== undefined);
  const visibleTo =
    (visibility: Visibility<"store">) =>
    (values: unknown[]): string =>
      visibility.condition(itemFilter, values);
  const assertUnfiltered = ({ conditions }: ItemSearch): void => {
    if (cipher === undefined || conditions.length === 0) return;
    throw invalid("'filter': the values of items are encrypted, so nothing can be found by them.");
  };

  const refreshExpiry = async (rows: readonly FoundRow[], refreshes: (ordinal: number) => boolean) => {
    const addresses = rows
      .filter(({ expires_at, ordinal }) => expires_at !== null && refreshes(ordinal))
      .map(({ namespace, key }) => ({ namespace, key }));
    if (addresses.length > 0) await database.query(REFRESH_EXPIRY, [JSON.stringify(addresses)]);
  };

  return {
    async get(visibility, reads, whenLarge) {
      const items: (StoredItem | undefined)[] = reads.map(() => undefined);
      if (reads.length === 0) return items;
      const wanted = reads.map(({ namespace, key }, ordinal) => ({ ordinal, namespace, key }));
      const values: unknown[] = [JSON.stringify(wanted)];
      const visible = visibility.condition(itemFilter, values);
      let rows: FoundRow[];
      if (whenLarge === undefined) rows = await database.query<FoundRow>(getItems(visible), values);
      else {
        const weighed = await database.query<FoundRow & { bytes: number }>(getWeighed(visible), values);
        rows = weighed;
        const heldBack = weighed
          .filter(({ bytes }) => bytes > LARGE_ANSWER_BYTES)
          .reduce((sum, { bytes }) => sum + bytes, 0);
        if (heldBack > 0) {
          await whenLarge(heldBack);
          rows = await database.query<FoundRow>(getItems(visible), values);
        }
      }
      for (const row of rows) items[row.ordinal] = itemOf(decryptRow(cipher, ITEM_JSON, row));
      await refreshExpiry(rows, (ordinal) => reads[ordinal]!.refreshTtl);
      return items;
    },

    async search(visibility, searches) {
      const found: FoundItem[][] = searches.map(() => []);
      searches.forEach(assertUnfiltered);
      const wanted = searches.map(wantedOf);
      const run = async (textOf: (visible: string) => string, group: typeof wanted): Promise<void> => {
        if (group.length === 0) return;
        const values: unknown[] = [JSON.stringify(group)];
        const text = textOf(visibility.condition(itemFilter, values));
        const rows = await database.query<FoundRow>(text, values);
        for (const row of rows) found[row.ordinal]!.push(foundItemOf(decryptRow(cipher, ITEM_JSON, row)));
        await refreshExpiry(rows, (ordinal) => searches[ordinal]!.refreshTtl);
      };
      for (const everywhere of [false, true]) {
        const group = wanted.filter(({ upper }) => (upper === null) === everywhere);
        await run(
          (visible) => searchItems(everywhere, visible),
          group.filter(({ query }) => query === undefined),
        );
        for (const one of group.filter(({ query }) => query !== undefined)) {
          await run((visible) => searchByMeaning(everywhere, visible), [one]);
        }
      }
      return found;
    },

    async searchPage(visibility, search, signal) {
      assertUnfiltered(search);
      const wanted = wantedOf(search, 0);
      const everywhere = wanted.upper === null;
      const values: unknown[] = [JSON.stringify([wanted])];
      const visible = visibility.condition(itemFilter, values);
      const statementOf = wanted.query === undefined ? searchItems : searchByMeaning;
      const rows = await reads.boundedRead<FoundRow & PageColumns>(
        roomyPage(statementOf(everywhere, visible), { columns: ["value"] }),
        values,
        signal,
      );
      await refreshExpiry(rows, () => search.refreshTtl);
      const items = decryptRows(cipher, ITEM_JSON, rows).map(foundItemOf);
      return { items, isCut: rows.length < Number(rows[0]?.page_rows ?? 0) };
    },

    async put(visibility, items) {
      if (items.length === 0) return;
      // Joined by hand: the values are JSON text already, and may be large.
      const rows = items.map(({ namespace, key, valueJson, ttlMinutes }) => {
        const address = JSON.stringify({ namespace, key, ttl_minutes: ttlMinutes ?? null });
        const value =
          cipher === undefined ? valueJson : ITEM_JSON.value.encrypted(cipher, valueJson, { namespace, key });
        return `${address.slice(0, -1)},"value":${value}}`;
      });
      const values: unknown[] = [`[${rows.join(",")}]`];
      const visible = visibility.condition(itemFilter, values);
      const stored = await database.query(
        putItems(visible, visibility.condition(wantedFilter, values)),
        values,
      );
      if (stored.length < items.length) throw forbidden("You may not store this item here.");
    },

    async delete(visibility, addresses) {
      if (addresses.length === 0) return;
      const values: unknown[] = [JSON.stringify(addresses.map(({ namespace, key }) => ({ namespace, key })))];
      await database.query(deleteItems(visibility.condition(itemFilter, values)), values);
    },

    listNamespaces: (visibility, search) => findNamespaces(query, visibleTo(visibility), search),
    listNamespacesFor: (visibility, search, signal) =>
      findNamespaces(
        (text, values) => reads.boundedRead(text, values, signal),
        visibleTo(visibility),
        search,
      ),

    async deleteExpired(_visibility, limit) {
      return (await database.query(DELETE_EXPIRED, [limit])).length;
    },
  };
};
