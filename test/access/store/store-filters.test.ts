import { Client } from "@langchain/langgraph-sdk";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { IS_ENCRYPTED } from "../../helpers/encryption.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { query } from "../../helpers/query.ts";

/** An `Auth` handler that answers with a filter on the namespace, the key and the fields of an item's value. */

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    graphConfigFile: fileURLToPath(new URL("langgraph.json", import.meta.url)),
  });
});
afterAll(() => server.close());
beforeEach(() => query(server, "delete from threadloom.store_items"));

const storeOf = (token: string): Client["store"] =>
  new Client({
    apiUrl: server.url,
    apiKey: null,
    defaultHeaders: { authorization: `Bearer ${token}` },
    callerOptions: { maxRetries: 0 },
  }).store;
const keysOf = async (store: Client["store"], prefix: string[] = []): Promise<string[]> =>
  (await store.searchItems(prefix)).items.map(({ key }) => key).sort();
const namespacesOf = async (store: Client["store"], options = {}): Promise<string[][]> =>
  (await store.listNamespaces(options)).namespaces;

test.each(["contains", "exact"])(
  "by namespace (%s), users see and change their own items only",
  async (scheme) => {
    const [alice, bob] = [storeOf(`${scheme} alice`), storeOf(`${scheme} bob`)];
    await alice.putItem(["notes", "alice"], "a", { text: "hers" });
    await bob.putItem(["notes", "bob"], "b", { text: "his" });
    await alice.putItem(["notes", "alice"], "a", { text: "hers, again" });

    expect(await alice.getItem(["notes", "alice"], "a")).toMatchObject({ value: { text: "hers, again" } });
    await expect(bob.getItem(["notes", "alice"], "a")).resolves.toBeNull();
    expect(await keysOf(alice)).toEqual(["a"]);
    expect(await keysOf(alice, ["notes"])).toEqual(["a"]);
    expect(await keysOf(bob, ["notes", "alice"])).toEqual([]);
    expect(await namespacesOf(alice)).toEqual([["notes", "alice"]]);
    expect(await namespacesOf(bob, { prefix: ["notes"], maxDepth: 1 })).toEqual([["notes"]]);
    expect(await namespacesOf(bob, { prefix: ["notes", "alice"] })).toEqual([]);

    await expect(bob.putItem(["notes", "alice"], "a", { text: "not his" })).rejects.toThrow(/403/);
    await expect(bob.putItem(["notes"], "b", {})).rejects.toThrow(/403/);
    await bob.deleteItem(["notes", "alice"], "a");
    expect(await alice.getItem(["notes", "alice"], "a")).toMatchObject({ value: { text: "hers, again" } });
    await alice.deleteItem(["notes", "alice"], "a");
    expect(await keysOf(alice)).toEqual([]);
  },
);

test("by key", async () => {
  const [alice, bob] = [storeOf("key alice"), storeOf("key bob")];
  await alice.putItem(["notes"], "alice", {});
  await alice.putItem(["notes"], "shared", {});
  await expect(alice.putItem(["notes"], "bob", {})).rejects.toThrow(/403/);
  expect(await keysOf(alice)).toEqual(["alice", "shared"]);
  expect(await keysOf(bob)).toEqual(["shared"]);
});

test("an item whose value names another namespace is found by its real one", async () => {
  const [alice, bob] = [storeOf("contains alice"), storeOf("contains bob")];
  await bob.putItem(["bob"], "k", { namespace: ["alice"], key: "alice" });
  expect(await keysOf(alice)).toEqual([]);
  await expect(bob.putItem(["alice"], "k", { namespace: ["bob"] })).rejects.toThrow(/403/);
});

// The database cannot compare fields of encrypted values.
test.skipIf(IS_ENCRYPTED)("by the fields of the value, where the filter names neither", async () => {
  const [alice, bob] = [storeOf("owner alice"), storeOf("owner bob")];
  await alice.putItem(["notes"], "a", { owner: "alice" });
  await expect(alice.putItem(["notes"], "none", { text: "no owner" })).rejects.toThrow(/403/);
  await expect(bob.putItem(["notes"], "a", { owner: "bob" })).rejects.toThrow(/403/);
  expect(await keysOf(alice)).toEqual(["a"]);
  expect(await keysOf(bob)).toEqual([]);
  await bob.deleteItem(["notes"], "a");
  expect(await alice.getItem(["notes"], "a")).toMatchObject({ value: { owner: "alice" } });
  const warnings = server.lines.filter((line) => line.includes("names neither 'namespace' nor 'key'"));
  expect(warnings).toHaveLength(1);
});
