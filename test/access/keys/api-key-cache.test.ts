import { afterEach, expect, test, vi } from "vitest";
import { openApiKeyCache, type ApiKeyCache } from "../../../src/access/keys/api-key-cache.ts";
import { hashOf, idOf, makeKey } from "../../../src/access/keys/key-text.ts";
import type { KeysAsStored, UsableKey } from "../../../src/access/keys/repository.ts";
import { listeningLogger } from "../../helpers/parts.ts";

/** A table of keys in memory, which counts its queries. */
const aTable = () => {
  const table = {
    version: 1,
    keys: [] as UsableKey[],
    wasUsed: false,
    isAway: false,
    asked: 0,
    noted: [] as string[],
    add(key: string, more: Partial<UsableKey> = {}) {
      const hash = hashOf(key);
      table.keys.push({
        id: idOf(hash),
        hash: hash.toString("hex"),
        scopes: ["read"],
        expiresInSeconds: null,
        ...more,
      });
      table.wasUsed = true;
      table.version += 1;
    },
    revokeAll() {
      table.keys = [];
      table.version += 1;
    },
    async readSince(version: number): Promise<KeysAsStored> {
      table.asked += 1;
      if (table.isAway) throw new Error("connect ECONNREFUSED");
      const isNew = version !== table.version;
      return {
        version: table.version,
        usable: isNew ? [...table.keys] : null,
        any: isNew ? table.wasUsed : null,
      };
    },
    async recordUse(used: readonly { id: string }[]) {
      table.noted.push(...used.map(({ id }) => id));
    },
  };
  return table;
};

const books: ApiKeyCache[] = [];
const open = async (table: ReturnType<typeof aTable>): Promise<ApiKeyCache> => {
  vi.useFakeTimers({ toFake: ["performance", "setInterval", "clearInterval", "setTimeout", "clearTimeout"] });
  const book = await openApiKeyCache({ repository: table, logger: listeningLogger().logger });
  books.push(book);
  return book;
};
afterEach(async () => {
  for (const book of books.splice(0)) await book.close();
  vi.useRealTimers();
});

test("a key is known within a second of its creation, and refused within a second of its revocation", async () => {
  const table = aTable();
  const book = await open(table);
  const key = makeKey();
  expect([book.isInUse, book.find(hashOf(key))]).toEqual([false, undefined]);
  table.add(key);
  await vi.advanceTimersByTimeAsync(1_000);
  const caller = book.find(hashOf(key));
  expect(caller).toEqual({ kind: "key", id: idOf(hashOf(key)), scopes: ["read"] });
  expect([book.isInUse, book.holds(caller as never)]).toEqual([true, true]);
  table.revokeAll();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(book.find(hashOf(key))).toBeUndefined();
  expect([book.isInUse, book.holds(caller as never)]).toEqual([true, false]);
});

test("unknown keys cause no database queries, however many are tried", async () => {
  const table = aTable();
  table.add(makeKey());
  const book = await open(table);
  for (let time = 0; time < 10_000; time++) expect(book.find(hashOf(`guess ${time}`))).toBeUndefined();
  expect(table.asked).toBe(1);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(table.asked).toBeLessThan(30);
});

test("an expired key is refused immediately", async () => {
  const table = aTable();
  const [key, past] = [makeKey(), makeKey()];
  table.add(key, { expiresInSeconds: 5 });
  table.add(past, { expiresInSeconds: -1 });
  const book = await open(table);
  expect(book.find(hashOf(key))).toBeDefined();
  expect(book.find(hashOf(past))).toBeUndefined();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(book.find(hashOf(key))).toBeUndefined();
  expect(book.isInUse).toBe(true);
});

test("if the keys can't be read, cached keys are trusted for at most one second", async () => {
  const table = aTable();
  const key = makeKey();
  table.add(key);
  const book = await open(table);
  table.isAway = true;
  await vi.advanceTimersByTimeAsync(2_000);
  await expect(book.find(hashOf(key))).rejects.toMatchObject({ kind: "unavailable" });
  await expect(book.find(hashOf("another"))).rejects.toMatchObject({ kind: "unavailable" });
  table.isAway = false;
  await expect(book.find(hashOf(key))).resolves.toMatchObject({ id: idOf(hashOf(key)) });
  expect(book.find(hashOf(key))).not.toBeInstanceOf(Promise);
});

test("requests that arrive while the event loop is blocked cause one query together", async () => {
  const table = aTable();
  const key = makeKey();
  table.add(key);
  const book = await open(table);
  vi.setSystemTime(Date.now());
  const before = table.asked;
  // The clock moves on, but no timer has run yet.
  vi.spyOn(performance, "now").mockReturnValue(performance.now() + 5_000);
  try {
    table.revokeAll();
    const found = await Promise.all(Array.from({ length: 100 }, () => book.find(hashOf(key))));
    expect(found).toEqual(Array.from({ length: 100 }, () => undefined));
    expect(table.asked - before).toBe(1);
  } finally {
    vi.restoreAllMocks();
  }
});

test("the last use is stored once a minute, and when the server stops", async () => {
  const table = aTable();
  const key = makeKey();
  table.add(key);
  const book = await open(table);
  for (let time = 0; time < 100; time++) book.find(hashOf(key));
  expect(table.noted).toEqual([]);
  await vi.advanceTimersByTimeAsync(61_000);
  expect(table.noted).toEqual([idOf(hashOf(key))]);
  await vi.advanceTimersByTimeAsync(180_000);
  expect(table.noted).toHaveLength(1);
  book.find(hashOf(key));
  await book.close();
  expect(table.noted).toHaveLength(2);
});

test("a scope that this version does not know grants nothing", async () => {
  const table = aTable();
  const key = makeKey();
  table.add(key, { scopes: ["everything", "read"] });
  const book = await open(table);
  expect(book.find(hashOf(key))).toMatchObject({ scopes: ["read"] });
});
