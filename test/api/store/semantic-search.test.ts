import { ANONYMOUS } from "../../../src/access/caller.ts";
import { Client } from "@langchain/langgraph-sdk";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";
import type { Database } from "../../../src/platform/database/database.ts";
import { createEmbedder, type EmbeddingModel } from "../../../src/api/store/embedding.ts";
import { DEFAULT_EXPIRY } from "../../../src/graphs/project/expiry.ts";
import { createItems } from "../../../src/api/store/items.ts";
import { PostgresStore } from "../../../src/api/store/postgres-store.ts";
import { StoreRepository } from "../../../src/api/store/repository.ts";
import { openItems } from "../../../src/api/store/semantic-search.ts";
import { createStoreService, type StoreService } from "../../../src/api/store/service.ts";
import { createVectorRepository, prepareVectorTable } from "../../../src/api/store/vectors.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { DIMS, vectorOf } from "./fixtures/bag-of-words.ts";
import { logger } from "./open-store.ts";
import { findPgvector, offersPgvector, openPgvector, runAt, type PgvectorServer } from "./pgvector.ts";
import { DEFAULT_SCHEMA } from "../../../src/platform/database/schema.ts";
import { authorize, EVERY_ITEM } from "../../helpers/access.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

const CONFIG = fileURLToPath(new URL("fixtures/langgraph.json", import.meta.url));
/** A server with encryption refuses `store.index` at once. */
const WITHOUT_ENCRYPTION = { graphConfigFile: CONFIG, encryptionKeys: [] };
const serverUrl = inject("serverUrl");
const source = await findPgvector(serverUrl);
const testServerOffersIt = await offersPgvector(serverUrl);

describe.runIf(!testServerOffersIt)("semantic search on a database without pgvector", () => {
  it("is refused at the start with an error that says how to get it", async () => {
    await expect(startTestServer(WITHOUT_ENCRYPTION)).rejects.toMatchObject({
      name: "StartError",
      message: expect.stringMatching(
        /^langgraph\.json configures 'store\.index', but .* no pgvector: install it .*postgresql-<version>-pgvector/,
      ) as string,
    });
  });

  it("leaves no change, so a server without it starts on the same database", async () => {
    const fresh = await freshDatabase();
    const { connectionString } = fresh;
    await expect(startTestServer({ ...WITHOUT_ENCRYPTION, connectionString })).rejects.toThrow("pgvector");
    const server = await startTestServer({ connectionString });
    const answer = await server.client.post("/store/items/search").send({ query: "tea" });
    expect([answer.status, answer.body]).toEqual([200, { items: [] }]);
    await server.close();
    await fresh.drop();
  });
});

describe.runIf(source !== undefined)("semantic search with pgvector", () => {
  let pgvector: PgvectorServer;
  let fresh: FreshDatabase;
  let database: Database;
  /** The texts sent to the model, request by request. */
  let asked: string[][];
  let before: (texts: string[]) => Promise<void> | void;

  const model: EmbeddingModel = {
    async embedDocuments(texts) {
      asked.push(texts);
      await before(texts);
      return texts.map(vectorOf);
    },
    async embedQuery(text) {
      await before([text]);
      return vectorOf(text);
    },
  };

  interface Open {
    service: StoreService;
    store: PostgresStore;
  }
  const openWith = (own: Partial<EmbeddingModel> = {}, embed = "test:model"): Open => {
    const repository = new StoreRepository(database);
    const embedder = createEmbedder({ ...model, ...own }, DIMS);
    const items = createItems({
      repository,
      vectors: createVectorRepository(database),
      index: { embed, embedder, fields: ["text"] },
      logger,
    });
    const parts = { repository, items, expiry: DEFAULT_EXPIRY };
    return {
      service: createStoreService({ ...parts, authorize }),
      store: new PostgresStore({ ...parts, visibility: EVERY_ITEM }),
    };
  };
  let open: Open;

  beforeAll(async () => {
    pgvector = await openPgvector(source!);
    fresh = await pgvector.freshDatabase();
    database = openTestDatabase(fresh.connectionString, { poolSize: 4, logger });
    await prepareVectorTable(database, DIMS);
  });
  afterAll(async () => {
    await database?.close();
    await fresh?.drop();
    await pgvector?.close();
  });
  beforeEach(async () => {
    await database.query("truncate threadloom.store_items cascade");
    asked = [];
    before = () => undefined;
    open = openWith();
  });

  const put = (key: string, value: Record<string, unknown>, index?: false | string[]) =>
    open.service.put(ANONYMOUS, { namespace: ["n"], key, value: value as never, index, ttl: undefined });
  const keys = async (query: string, options: object = {}, at: Open = open) =>
    (await at.store.search(["n"], { query, ...options })).map(({ key }) => key);
  const vectors = async (): Promise<number> =>
    (
      await database.query<{ count: number }>("select count(*)::int as count from threadloom.store_vectors")
    )[0]!.count;

  it("returns the most similar items first, with their scores", async () => {
    await put("tea", { text: "Ada drinks green tea" });
    await put("coffee", { text: "Ada drinks coffee" });
    await put("rain", { text: "It rained all day" });
    const found = await open.store.search(["n"], { query: "green tea" });
    expect(found.map(({ key }) => key)).toEqual(["tea", "coffee", "rain"]);
    expect(found[0]!.score).toBeCloseTo(2 / Math.sqrt(8), 5);
    expect(found[2]!.score).toBeLessThan(0.2);
    const listed = await open.store.search(["n"]);
    expect(listed.map((item) => "score" in item)).toEqual([false, false, false]);
  });

  it("respects the namespace, the filter, the limit and the offset", async () => {
    for (const [key, kind] of Object.entries({ a: "x", b: "y", c: "x", d: "x" })) {
      await put(key, { text: `tea ${key}${key}${key}`, kind });
    }
    await open.store.put(["other"], "tea", { text: "tea", kind: "x" });
    expect(await keys("tea aaa", { filter: { kind: "x" } })).toEqual(["a", "c", "d"]);
    expect(await keys("tea aaa", { filter: { kind: { $ne: "x" } } })).toEqual(["b"]);
    expect(await keys("tea aaa", { filter: { kind: "x" }, limit: 1, offset: 1 })).toEqual(["c"]);
    expect((await open.store.search([], { query: "tea" }))[0]!.namespace).toEqual(["other"]);
    expect(await open.store.search(["othe"], { query: "tea" })).toEqual([]);
  });

  it("indexes the item's own choice: the configured paths, others, or nothing", async () => {
    const value = { text: "tea", title: "coffee", list: [{ note: "milk" }, { note: "sugar" }] };
    await put("default", value);
    await put("title", value, ["title"]);
    await put("list", value, ["list[*].note", "title"]);
    await put("whole", value, ["$"]);
    await put("none", value, false);
    await put("empty", value, []);
    await put("absent", { other: "tea" });
    await put("blank", { text: "  " });
    expect((await keys("tea"))[0]).toBe("default");
    expect((await keys("sugar"))[0]).toBe("list");
    expect((await keys("tea")).sort()).toEqual(["default", "list", "title", "whole"]);
    expect(await open.store.search(["n"], { limit: 100 })).toHaveLength(8);
    expect(await vectors()).toBe(6);
  });

  it("scores an item by the nearest of its texts, and returns it once", async () => {
    await put("many", { text: "x", list: ["rain", "tea", "snow", "tea"] }, ["list[*]"]);
    await put("one", { text: "green tea" });
    expect(await keys("tea")).toEqual(["many", "one"]);
    expect((await open.store.search(["n"], { query: "tea" }))[0]!.score).toBeCloseTo(1, 5);
  });

  it("embeds a text again only when it has changed", async () => {
    await put("k", { text: "tea", rest: 1 });
    await put("k", { text: "tea", rest: 2 });
    expect(asked).toEqual([["tea"]]);
    await put("k", { text: "coffee" });
    expect(asked).toEqual([["tea"], ["coffee"]]);
    expect(await vectors()).toBe(1);
    expect((await open.store.search(["n"], { query: "coffee" }))[0]!.score).toBeCloseTo(1, 5);
    await put("k", { texts: ["a", "b", "c"] }, ["texts[*]"]);
    await put("k", { texts: ["c", "d", "a"] }, ["texts[*]"]);
    expect(asked.slice(2)).toEqual([["a", "b", "c"], ["d"]]);
    await put("k", { text: "coffee" }, false);
    expect(await vectors()).toBe(0);
  });

  it("requests all texts of a batch at once, each once", async () => {
    await open.store.batch(
      ["tea", "coffee", "tea"].map((text, index) => ({ namespace: ["n"], key: `${index}`, value: { text } })),
    );
    expect(asked).toEqual([["tea", "coffee"]]);
    expect(await keys("tea")).toEqual(["0", "2", "1"]);
  });

  it("removes the vectors of deleted and of expired items", async () => {
    await put("deleted", { text: "tea" });
    await open.service.put(ANONYMOUS, {
      namespace: ["n"],
      key: "expired",
      value: { text: "tea" },
      ttl: 5,
      index: null,
    });
    await put("stays", { text: "tea" });
    await open.service.delete(ANONYMOUS, { namespace: ["n"], key: "deleted" });
    await database.query("update threadloom.store_items set expires_at = now() where expires_at is not null");
    expect(await keys("tea")).toEqual(["stays"]);
    await open.service.deleteExpired(ANONYMOUS, 10);
    expect(await vectors()).toBe(1);
  });

  it("finds an item by its current text when it was replaced while another was being embedded", async () => {
    await put("k", { text: "tea" });
    const other = openWith({ embedDocuments: (texts) => Promise.resolve(texts.map(vectorOf)) });
    // "tea" has a vector and is not requested. While the rest is embedded, another put changes it to coffee.
    before = async (texts) => {
      if (texts.includes("sugar")) await other.store.put(["n"], "k", { text: "coffee" });
    };
    await put("k", { text: "tea", more: "sugar" }, ["text", "more"]);
    expect(asked).toEqual([["tea"], ["sugar"], ["tea", "sugar"]]);
    expect((await open.store.search(["n"], { query: "tea" }))[0]!.score).toBeCloseTo(1, 5);
    expect((await open.store.search(["n"], { query: "coffee" }))[0]!.score).toBeCloseTo(0, 5);
  });

  it("lets crossing puts and deletes through, and every item's vectors match its text", async () => {
    const names = Array.from({ length: 12 }, (_, index) => `k${index}`);
    const batch = (order: string[], text?: string) =>
      open.store.batch(
        order.map((key) => ({ namespace: ["n"], key, value: text === undefined ? null : { text } })),
      );
    const backwards = names.toReversed();
    for (let round = 0; round < 8; round += 1) {
      await Promise.all([
        batch(names, "tea"),
        batch(backwards, "coffee"),
        batch(backwards),
        batch(names, "x"),
      ]);
    }
    const items = await open.store.search(["n"], { limit: 100 });
    expect(await vectors()).toBe(items.length);
    for (const { key, value } of items) {
      const found = await open.store.search(["n"], { query: value.text as string, limit: 100 });
      expect(found.find((item) => item.key === key)!.score).toBeCloseTo(1, 5);
    }
  });

  it("holds no connection while it embeds", async () => {
    before = async () => {
      await Promise.all(Array.from({ length: 4 }, () => database.query("select pg_sleep(0.01)")));
    };
    await Promise.all(Array.from({ length: 12 }, (_, index) => put(`${index}`, { text: `tea ${index}` })));
    expect(await keys("tea", { limit: 100 })).toHaveLength(12);
  });

  it.each<[string, Partial<EmbeddingModel>, string]>([
    ["fails", { embedDocuments: () => Promise.reject(new Error("bad key sk-123")) }, "failed"],
    [
      "gives vectors of another length",
      { embedDocuments: () => Promise.resolve([[1, 2]]) },
      "gave 2 numbers",
    ],
    ["gives too few vectors", { embedDocuments: () => Promise.resolve([]) }, "gave 0 vectors for 1 texts"],
    [
      "gives what is no number",
      { embedDocuments: () => Promise.resolve([[NaN, ...vectorOf("").slice(1)]]) },
      "no finite number",
    ],
    [
      "gives a number that does not fit",
      { embedDocuments: () => Promise.resolve([[1e300, ...vectorOf("").slice(1)]]) },
      "no finite number",
    ],
  ])("stores nothing if the model %s, and does not reveal its secrets", async (_what, own, sentence) => {
    const { service } = openWith(own);
    const failing = service.put(ANONYMOUS, {
      namespace: ["n"],
      key: "k",
      value: { text: "tea" },
      index: null,
      ttl: null,
    });
    await expect(failing).rejects.toMatchObject({
      kind: "unavailable",
      message: expect.stringContaining(sentence) as string,
    });
    await expect(failing).rejects.not.toThrow("sk-123");
    expect(await open.store.search(["n"])).toEqual([]);
  });

  it("refuses an item with too many texts", async () => {
    const list = Array.from({ length: 1_001 }, (_, index) => `text ${index}`);
    await expect(put("k", { list }, ["list[*]"])).rejects.toThrow("'index' finds 1001 texts");
    expect(asked).toEqual([]);
  });

  it("gives a text without meaning for the model no similarity", async () => {
    await put("numbers", { text: "1234" });
    await put("tea", { text: "tea" });
    const found = await open.store.search(["n"], { query: "tea" });
    expect(found.map(({ key, score }) => [key, Math.round(score!)])).toEqual([
      ["tea", 1],
      ["numbers", 0],
    ]);
    expect((await open.store.search(["n"], { query: "???" })).map(({ score }) => score)).toEqual([0, 0]);
  });

  it("indexes the longest key under the longest namespace", async () => {
    const long = (length: number) =>
      Array.from({ length }, (_, index) =>
        String.fromCharCode(48 + ((index * index * 7919 + index * 31) % 74)),
      ).join("");
    await open.store.put([long(1_492)], long(1_000), { text: "tea" });
    expect(await open.store.search([], { query: "tea" })).toHaveLength(1);
  });

  it("compares no vectors of different models, and finds an item again after another put", async () => {
    await put("k", { text: "tea" });
    const changed = openWith({}, "test:another");
    expect(await keys("tea", {}, changed)).toEqual([]);
    await changed.store.put(["n"], "k", { text: "tea" });
    expect(asked).toEqual([["tea"], ["tea"]]);
    expect(await keys("tea", {}, changed)).toEqual(["k"]);
    expect(await vectors()).toBe(1);
  });

  it("removes the vectors of items stored while no semantic search is configured", async () => {
    await put("k", { text: "tea" });
    await put("other", { text: "tea" });
    const repository = new StoreRepository(database);
    const items = await openItems({ database, repository, index: undefined, logger });
    const store = new PostgresStore({ visibility: EVERY_ITEM, repository, items, expiry: DEFAULT_EXPIRY });
    await store.put(["n"], "k", { text: "coffee" });
    expect((await store.search(["n"], { query: "tea" })).map(({ key }) => key)).toEqual(["k", "other"]);
    expect(await keys("tea")).toEqual(["other"]);
  });

  it("reports at the start that the length of the vectors was changed, and the statement that removes them", async () => {
    const refused = (await prepareVectorTable(database, 8).catch((error: unknown) => error)) as Error;
    expect([refused.name, refused.message]).toEqual([
      "StartError",
      expect.stringContaining(`'store.index.dims' is 8, but the vectors in this database have ${DIMS}`),
    ]);
    expect(refused.message).toContain(`run 'drop table ${database.schema}.store_vectors'`);
  });

  describe("as a whole server", () => {
    let own: FreshDatabase;
    let server: TestServer | undefined;
    beforeEach(async () => {
      own = await pgvector.freshDatabase();
    });
    afterEach(async () => {
      await server?.close();
      server = undefined;
      await own.drop();
    });
    const start = () => startTestServer({ graphConfigFile: CONFIG, connectionString: own.connectionString });

    it("serves the official client and the graphs", async () => {
      server = await start();
      const client = new Client({ apiUrl: server.url, apiKey: null });
      await client.store.putItem(["n"], "tea", { text: "green tea" });
      await client.store.putItem(["n"], "rain", { text: "rain" });
      await client.store.putItem(["n"], "hidden", { text: "green tea" }, { index: false });
      await client.store.putItem(["n"], "title", { title: "green tea", text: "snow" }, { index: ["title"] });
      const { items } = await client.store.searchItems(["n"], { query: "green tea" });
      expect(items.map(({ key }) => key)).toEqual(["tea", "title", "rain"]);
      expect(items.map(({ score }) => score)).toEqual(
        [1, 1, 0].map((score) => expect.closeTo(score, 5) as number),
      );
      const state = await client.runs.wait(null, "remembering", {
        input: { remember: ["the cat sleeps", "a dog barks", "the cat eats"], query: "the cat eats fish" },
      });
      expect(state).toMatchObject({ found: ["the cat eats 0.87", "the cat sleeps 0.58"] });
    });

    it("can be started by several processes at once", async () => {
      const servers = await Promise.all([start(), start(), start()]);
      await Promise.all(servers.map((one) => one.close()));
      const tables = await runAt(
        own.connectionString,
        `select to_regclass('${DEFAULT_SCHEMA}.store_vectors') is not null as found`,
      );
      expect(tables).toEqual([{ found: true }]);
    });

    it("is refused with a clear error if the database's user may not create the extension", async () => {
      const role = `threadloom_test_${process.pid}_${Date.now()}`;
      await runAt(
        own.connectionString,
        `create role ${role} login password 'secret'`,
        `grant usage, create on schema ${DEFAULT_SCHEMA} to ${role}`,
        `grant all on all tables in schema ${DEFAULT_SCHEMA} to ${role}`,
      );
      const url = new URL(own.connectionString);
      url.username = role;
      url.password = "secret";
      const limited = openTestDatabase(url.href);
      await expect(prepareVectorTable(limited, DIMS)).rejects.toThrow(
        "may not create the extension pgvector",
      );
      await limited.close();
      await runAt(own.connectionString, `drop owned by ${role}`, `drop role ${role}`);
    });
  });
});
