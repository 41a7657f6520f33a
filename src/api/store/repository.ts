import type { Visibility } from "../../access/visibility.ts";
import { forbidden, invalid } from "../../platform/domain/errors.ts";
import { LARGE_ANSWER_BYTES, type ReadBudget } from "../../platform/lib/large-answers.ts";
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
    /** Only vectors of one model can be compared. */
    embeddedBy: string;
  };
}

export interface NamespaceMatch {
  matchType: "prefix" | "suffix";
  /** Labels; `*` matches any one. */
  path: string[];
}

export interface NamespaceSearch {
  matches: NamespaceMatch[];
  /** Labels to keep; undefined means all. */
  maxDepth: number | undefined;
  limit: number;
  offset: number;
}

/** The visibility's condition applies to the item: see `filterable`. */
export interface StoreRepository {
  /**
   * In the order of the addresses. One statement, or two if values are large: the second is run after reserving.
   */
  get(
    visibility: Visibility<"store">,
    reads: readonly ItemRead[],
    budget?: ReadBudget,
  ): Promise<(StoredItem | undefined)[]>;
  /** The nearest first, or the last updated first. At most two statements, and one per vector. */
  search(visibility: Visibility<"store">, searches: readonly ItemSearch[]): Promise<FoundItem[][]>;
  /**
   * A bounded read (platform/database/bounded-reads.ts). A page that would grow too large ends early; `isCut`: more
   * items match within the limit.
   */
  searchPage(
    visibility: Visibility<"store">,
    search: ItemSearch,
    signal?: AbortSignal,
  ): Promise<{ items: FoundItem[]; isCut: boolean }>;
  /**
   * One statement. Addresses must be unique. Throws `forbidden` if the filter excludes an item or the one that it would
   * replace.
   */
  put(visibility: Visibility<"store">, items: readonly NewItem[]): Promise<void>;
  /** Missing items are no error. */
  delete(visibility: Visibility<"store">, addresses: readonly ItemAddress[]): Promise<void>;
  /** In byte order of their labels. */
  listNamespaces(visibility: Visibility<"store">, query: NamespaceSearch): Promise<string[][]>;
  /** The same as a bounded read. */
  listNamespacesFor(
    visibility: Visibility<"store">,
    query: NamespaceSearch,
    signal: AbortSignal | undefined,
  ): Promise<string[][]>;
  /** The longest expired first; returns how many. */
  deleteExpired(visibility: Visibility<"store">, limit: number): Promise<number>;
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

/** Labels that every match begins with. */
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
 * Every method takes a list, because LangGraph passes all operations of a tick at once. The list is one JSON parameter,
 * so one prepared statement serves any length.
 */
export const createStoreRepository = (database: Queryable, reads: BoundedReads): StoreRepository => {
  const { encryption } = database;
  const query: Read = (text, values) => database.query(text, values);
  const itemFilter = filterable("item", encryption.isOn);
  const wantedFilter = filterable("wanted", encryption.isOn);
  const visibleTo =
    (visibility: Visibility<"store">) =>
    (values: unknown[]): string =>
      visibility.condition(itemFilter, values);
  const assertUnfiltered = ({ conditions }: ItemSearch): void => {
    if (!encryption.isOn || conditions.length === 0) return;
    throw invalid("'filter': the values of items are encrypted, so nothing can be found by them.");
  };

  const refreshExpiry = async (rows: readonly FoundRow[], refreshes: (ordinal: number) => boolean) => {
    const addresses = rows
      .filter(({ expires_at, ordinal }) => expires_at !== null && refreshes(ordinal))
      .map(({ namespace, key }) => ({ namespace, key }));
    if (addresses.length > 0) await database.query(REFRESH_EXPIRY, [JSON.stringify(addresses)]);
  };

  return {
    async get(visibility, reads, budget) {
      const items: (StoredItem | undefined)[] = reads.map(() => undefined);
      if (reads.length === 0) return items;
      const wanted = reads.map(({ namespace, key }, ordinal) => ({ ordinal, namespace, key }));
      const values: unknown[] = [JSON.stringify(wanted)];
      const visible = visibility.condition(itemFilter, values);
      let rows: FoundRow[];
      if (budget === undefined) rows = await database.query<FoundRow>(getItems(visible), values);
      else {
        const weighed = await database.query<FoundRow & { bytes: number }>(getWeighed(visible), values);
        rows = weighed;
        const heldBack = weighed
          .filter(({ bytes }) => bytes > LARGE_ANSWER_BYTES)
          .reduce((sum, { bytes }) => sum + bytes, 0);
        if (heldBack > 0) {
          await budget.reserve(heldBack);
          rows = await database.query<FoundRow>(getItems(visible), values);
        }
      }
      for (const row of rows) items[row.ordinal] = itemOf(encryption.decrypted("store_items", row));
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
        for (const row of rows)
          found[row.ordinal]!.push(foundItemOf(encryption.decrypted("store_items", row)));
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
      const items = encryption.decryptedRows("store_items", rows).map(foundItemOf);
      return { items, isCut: rows.length < Number(rows[0]?.page_rows ?? 0) };
    },

    async put(visibility, items) {
      if (items.length === 0) return;
      // The values are JSON text already, and may be large.
      const rows = items.map(({ namespace, key, valueJson, ttlMinutes }) => {
        const address = JSON.stringify({ namespace, key, ttl_minutes: ttlMinutes ?? null });
        const value = encryption.stored("store_items", "value", valueJson, { namespace, key });
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
