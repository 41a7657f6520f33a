import { createReadRoom } from "../../../src/http/large-answers.ts";
import { Client } from "@langchain/langgraph-sdk";
import type { FastifyInstance } from "fastify";
import request from "supertest";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ANONYMOUS } from "../../../src/access/caller.ts";
import { createApp } from "../../../src/http/app.ts";
import { allowedOrigins } from "../../../src/http/sites.ts";
import { createStoreRoutes } from "../../../src/api/store/routes.ts";
import { CONNECTION_LIMITS } from "../../helpers/parts.ts";
import { logger, openStore, type OpenStore } from "./open-store.ts";

describe("/store", () => {
  let open: OpenStore;
  let app: FastifyInstance;
  beforeAll(async () => {
    open = await openStore();
    app = await createApp({
      readRoom: createReadRoom(),
      logger,
      authenticate: () => ANONYMOUS,
      connectionLimits: CONNECTION_LIMITS,
      bodyLimits: { bytes: 1_000_000, elements: 250_000 },
      cors: { origins: allowedOrigins(["*"]) },
      routes: [createStoreRoutes(open.service)],
    });
    await app.listen({ host: "127.0.0.1", port: 0 });
  });
  afterAll(async () => {
    await app.close();
    await open.close();
  });
  beforeEach(async () => {
    await open.empty();
  });

  const put = (body: object) => request(app.server).put("/store/items").send(body);
  const search = (body: object) => request(app.server).post("/store/items/search").send(body);
  const namespaces = (body: object) => request(app.server).post("/store/namespaces").send(body);
  const get = (query: string) => request(app.server).get(`/store/items?${query}`);

  it("stores an item with 204 and returns it", async () => {
    const stored = await put({ namespace: ["users", "ada"], key: "likes", value: { tea: [1, null] } });
    expect(stored.status).toBe(204);
    expect(stored.text).toBe("");
    const answer = await get("namespace=users.ada&key=likes");
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      namespace: ["users", "ada"],
      key: "likes",
      value: { tea: [1, null] },
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/) as string,
      updated_at: (answer.body as { created_at: string }).created_at,
    });
  });

  it("accepts the namespace dot-joined and repeated, also with commas in labels", async () => {
    await put({ namespace: ["a,b", "[c]"], key: "k", value: {} });
    for (const query of ["namespace=a,b.[c]&key=k", "namespace=a,b&namespace=[c]&key=k"]) {
      expect((await get(query)).body).toMatchObject({ key: "k" });
    }
  });

  it("stores, finds and deletes items with colons in labels, which new releases of LangGraph refuse in nodes", async () => {
    expect((await put({ namespace: ["a:b", "c"], key: "k", value: {} })).status).toBe(204);
    expect((await get("namespace=a:b.c&key=k")).body).toMatchObject({ namespace: ["a:b", "c"] });
    expect((await search({ namespace_prefix: ["a:b"] })).body).toMatchObject({ items: [{ key: "k" }] });
    expect((await namespaces({ prefix: ["a:b"] })).body).toEqual({ namespaces: [["a:b", "c"]] });
    await request(app.server)
      .delete("/store/items")
      .send({ namespace: ["a:b", "c"], key: "k" });
    expect((await get("namespace=a:b.c&key=k")).body).toBeNull();
  });

  it("answers null with 200 for a missing item", async () => {
    for (const query of ["namespace=users.ada&key=likes", "key=likes", "namespace=&key=likes"]) {
      const answer = await get(query);
      expect(answer.status).toBe(200);
      expect(answer.text).toBe("null");
      expect(answer.headers["content-type"]).toContain("application/json");
    }
  });

  it("deletes by a JSON body with 204, whether or not the item existed", async () => {
    await put({ namespace: ["n"], key: "k", value: {} });
    for (let time = 0; time < 2; time += 1) {
      const answer = await request(app.server)
        .delete("/store/items")
        .send({ namespace: ["n"], key: "k" });
      expect(answer.status).toBe(204);
    }
    expect((await get("namespace=n&key=k")).text).toBe("null");
  });

  it("searches under a prefix with a filter, ten items by default", async () => {
    for (let index = 0; index < 12; index += 1) {
      await put({ namespace: ["n", `${index % 2}`], key: `k${index}`, value: { index } });
    }
    await put({ namespace: ["nn"], key: "other", value: {} });
    const found = async (body: object) =>
      ((await search(body).expect(200)).body as { items: { key: string }[] }).items.map(({ key }) => key);
    expect(await found({ namespace_prefix: ["n"] })).toHaveLength(10);
    expect(await found({ namespace_prefix: ["n"], limit: 1_000 })).toHaveLength(12);
    expect(await found({})).toContain("other");
    expect(
      await found({ namespace_prefix: null, filter: null, query: null, refresh_ttl: null }),
    ).toHaveLength(10);
    // Without semantic search a query is ignored, as in the hosted service.
    const everything = await search({ namespace_prefix: ["n"] });
    const asked = await search({ namespace_prefix: ["n"], query: "who likes tea?" });
    expect([asked.status, asked.body]).toEqual([200, everything.body]);
    expect(await found({ namespace_prefix: ["n", "1"], filter: { index: { $gt: 5 } }, limit: 2 })).toEqual([
      "k11",
      "k9",
    ]);
    expect(await found({ namespace_prefix: ["n"], limit: 2, offset: 11 })).toEqual(["k0"]);
    expect(await found({ namespace_prefix: ["%"] })).toEqual([]);
  });

  it("lists namespaces by prefix, suffix and depth", async () => {
    for (const namespace of [["a"], ["a", "x"], ["a", "y", "x"], ["b", "x"]]) {
      await put({ namespace, key: "k", value: {} });
    }
    expect((await namespaces({})).body).toEqual({
      namespaces: [["a"], ["a", "x"], ["a", "y", "x"], ["b", "x"]],
    });
    expect((await namespaces({ prefix: ["a"], suffix: ["x"] })).body).toEqual({
      namespaces: [
        ["a", "x"],
        ["a", "y", "x"],
      ],
    });
    expect((await namespaces({ max_depth: 1, limit: 1, offset: 1 })).body).toEqual({ namespaces: [["b"]] });
    expect((await namespaces({ prefix: ["*", "y"] })).body).toEqual({ namespaces: [["a", "y", "x"]] });
    expect((await request(app.server).post("/store/namespaces")).body).toMatchObject({
      namespaces: [["a"], {}, {}, {}],
    });
  });

  it("lets items with a time to live expire, and refreshes them on request", async () => {
    await put({ namespace: ["n"], key: "k", value: {}, ttl: 5 }).expect(204);
    await open.age(4);
    await get("namespace=n&key=k&refresh_ttl=false");
    await open.age(0.5);
    await get("namespace=n&key=k&refresh_ttl=true");
    await open.age(4);
    expect((await get("namespace=n&key=k&refresh_ttl=0")).body).toMatchObject({ key: "k" });
    await open.age(2);
    expect((await get("namespace=n&key=k")).text).toBe("null");
  });

  const good = { namespace: ["n"], key: "k", value: {} };
  it.each([
    ["namespace", { ...good, namespace: undefined }],
    ["namespace", { ...good, namespace: [] }],
    ["namespace", { ...good, namespace: ["a", ""] }],
    ["namespace", { ...good, namespace: ["a.b"] }],
    ["namespace", { ...good, namespace: ["langgraph"] }],
    ["namespace", { ...good, namespace: ["\0"] }],
    ["namespace", { ...good, namespace: ["\ud800"] }],
    ["namespace", { ...good, namespace: Array.from({ length: 300 }, () => "abc") }],
    ["namespace", { ...good, namespace: "n" }],
    ["namespace", { ...good, namespace: [1] }],
    ["key", { ...good, key: undefined }],
    ["key", { ...good, key: 1 }],
    ["key", { ...good, key: "a\0" }],
    ["key", { ...good, key: "ü".repeat(501) }],
    ["value", { ...good, value: undefined }],
    ["value", { ...good, value: null }],
    ["value", { ...good, value: [1] }],
    ["value", { ...good, value: "text" }],
    ["value", { ...good, value: { a: ["\0"] } }],
    ["value", { ...good, value: { "\udc00": 1 } }],
    ["index", { ...good, index: true }],
    ["index", { ...good, index: [1] }],
    ["ttl", { ...good, ttl: 0 }],
    ["ttl", { ...good, ttl: -1 }],
    ["ttl", { ...good, ttl: 1e300 }],
    ["ttl", { ...good, ttl: "5" }],
  ])("refuses to store with 422, naming %s", async (field, body) => {
    const answer = await put(body);
    expect(answer.status).toBe(422);
    expect((answer.body as { detail: string }).detail).toContain(`'${field}`);
    expect(await open.store.listNamespaces()).toEqual([]);
  });

  it("stores an item without its index if no semantic search is configured, like the hosted service", async () => {
    expect((await put({ ...good, index: ["a"] })).status).toBe(204);
    expect((await get("namespace=n&key=k")).body).toMatchObject({ key: "k", value: {} });
  });

  it.each([
    ["namespace_prefix", { namespace_prefix: ["a.b"] }],
    ["namespace_prefix", { namespace_prefix: "a" }],
    ["filter", { filter: [] }],
    ["filter", { filter: { a: "\0" } }],
    ["filter.a", { filter: { a: { $regex: "x" } } }],
    ["filter.a", { filter: { a: { $gt: 1, b: 2 } } }],
    ["filter.a.$in", { filter: { a: { $in: 1 } } }],
    ["limit", { limit: 0 }],
    ["limit", { limit: 1_001 }],
    ["limit", { limit: "a" }],
    ["offset", { offset: -1 }],
    ["offset", { offset: 1e300 }],
    ["query", { query: 1 }],
    ["refresh_ttl", { refresh_ttl: "yes" }],
  ])("refuses to search with 422, naming %s", async (field, body) => {
    const answer = await search(body);
    expect(answer.status).toBe(422);
    expect((answer.body as { detail: string }).detail).toContain(`'${field}`);
  });

  it.each([
    ["prefix", { prefix: [""] }],
    ["suffix", { suffix: ["\0"] }],
    ["max_depth", { max_depth: 0 }],
    ["max_depth", { max_depth: 1e12 }],
    ["limit", { limit: 1.5 }],
    ["offset", { offset: -1 }],
  ])("refuses to list namespaces with 422, naming %s", async (field, body) => {
    const answer = await namespaces(body);
    expect(answer.status).toBe(422);
    expect((answer.body as { detail: string }).detail).toContain(`'${field}`);
  });

  it("refuses with 422 to get and to delete without a key or with a broken namespace", async () => {
    for (const query of [
      "namespace=a",
      "namespace=a..b&key=k",
      "namespace=%00&key=k",
      "namespace=a&key=k&refresh_ttl=x",
    ]) {
      expect((await get(query)).status).toBe(422);
    }
    for (const body of [{ namespace: ["a"] }, { namespace: ["a.b"], key: "k" }, [], null]) {
      expect(
        (
          await request(app.server)
            .delete("/store/items")
            .send(body as object)
        ).status,
      ).toBe(422);
    }
  });

  it("serves the official client", async () => {
    const address = app.server.address() as { port: number };
    const { store } = new Client({ apiUrl: `http://127.0.0.1:${address.port}`, apiKey: null });
    await store.putItem(["users", "ada"], "likes", { tea: true }, { ttl: 5 });
    expect(await store.getItem(["users", "ada"], "likes", { refreshTtl: true })).toMatchObject({
      value: { tea: true },
      createdAt: expect.any(String) as string,
    });
    expect(await store.getItem(["users", "ada"], "missing")).toBeNull();
    expect((await store.searchItems(["users"], { filter: { tea: true } })).items).toHaveLength(1);
    expect(await store.listNamespaces({ prefix: ["users"] })).toEqual({ namespaces: [["users", "ada"]] });
    await store.deleteItem(["users", "ada"], "likes");
    expect(await store.getItem(["users", "ada"], "likes")).toBeNull();
  });

  it("shares its items with the graphs", async () => {
    await open.store.put(["n"], "of a graph", { a: 1 });
    expect((await get("namespace=n&key=of+a+graph")).body).toMatchObject({ value: { a: 1 } });
    await put({ namespace: ["n"], key: "of a client", value: { b: 2 } });
    expect((await open.store.get(["n"], "of a client"))?.value).toEqual({ b: 2 });
  });
});
