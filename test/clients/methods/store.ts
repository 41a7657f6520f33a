import { expect } from "vitest";
import type { Client } from "@langchain/langgraph-sdk";
import { IS_ENCRYPTED } from "../../helpers/encryption.ts";
import type { Calls } from "./calls.ts";

const aNamespace = async (client: Client): Promise<string[]> => {
  const namespace = ["tour", crypto.randomUUID()];
  await client.store.putItem(namespace, "key", { colour: "blue" });
  return namespace;
};

/** Encrypted values can't be searched. */
const byColour = (colour: string) => (IS_ENCRYPTED ? {} : { filter: { colour } });

export const STORE_CALLS: Calls = {
  "store.putItem": async (client) => {
    const namespace = await aNamespace(client);
    await client.store.putItem(namespace, "key", { colour: "red" }, { ttl: 60, index: false });
    expect((await client.store.getItem(namespace, "key"))?.value).toEqual({ colour: "red" });
  },
  "store.getItem": async (client) => {
    const namespace = await aNamespace(client);
    expect(await client.store.getItem(namespace, "key")).toMatchObject({
      namespace,
      key: "key",
      value: { colour: "blue" },
    });
    expect(await client.store.getItem(namespace, "none")).toBeNull();
  },
  "store.deleteItem": async (client) => {
    const namespace = await aNamespace(client);
    await client.store.deleteItem(namespace, "key");
    expect(await client.store.getItem(namespace, "key")).toBeNull();
  },
  "store.searchItems": async (client) => {
    const namespace = await aNamespace(client);
    const { items } = await client.store.searchItems(namespace, { ...byColour("blue"), limit: 5 });
    expect(items).toMatchObject([{ namespace, key: "key" }]);
    if (IS_ENCRYPTED) return;
    expect((await client.store.searchItems(namespace, byColour("red"))).items).toEqual([]);
  },
  "store.listNamespaces": async (client) => {
    const namespace = await aNamespace(client);
    const { namespaces } = await client.store.listNamespaces({ prefix: namespace, maxDepth: 2 });
    expect(namespaces).toEqual([namespace]);
  },
};
