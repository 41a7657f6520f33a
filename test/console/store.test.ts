import { fileURLToPath } from "node:url";
import { describe, expect, inject, test } from "vitest";
import { Client } from "@langchain/langgraph-sdk";
import type { Locator } from "playwright-core";
import { findPgvector, openPgvector } from "../api/store/pgvector.ts";
import { openConsole, reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { onConsole } from "./on-console.ts";

describe.skipIf(reasonForNoBrowser() !== undefined)("the page of the store", { timeout: SLOW_MS }, () => {
  let shown: OpenConsole;
  let client: Client;
  const main = (): Locator => shown.page.getByRole("main");
  const dialog = (): Locator => shown.page.getByRole("dialog");
  const namespaces = (): Locator => main().getByRole("navigation", { name: "Namespaces" });
  const items = (): Locator => main().getByRole("region", { name: "Items" });
  const keys = async (): Promise<string[]> => await items().locator("tbody td:first-child").allTextContents();
  const open = async (place: string): Promise<void> => {
    await shown.go(place);
    await main().getByRole("heading", { level: 1, name: "Store" }).waitFor();
  };

  onConsole({}, async (opened) => {
    shown = opened;
    client = new Client({ apiUrl: shown.server.url, apiKey: null });
    await shown.page.getByRole("navigation").waitFor();
  });

  test("says that the store is empty", async () => {
    await open("/store");
    await main().getByText("The store is empty.").waitFor();
    await main().getByText("No items match.").waitFor();
    expect(await shown.violations()).toEqual([]);
  });

  test("stores an item, and does not replace an existing one without a confirmation", async () => {
    await main().getByRole("button", { name: "New item" }).click();
    await dialog().getByLabel("Namespace").fill("users.ada");
    await dialog().getByLabel("Key").fill("profile");
    await dialog()
      .getByLabel("Value (JSON)")
      .fill('{"kind": "profile", "stars": 5, "text": "Likes engines"}');
    expect(await shown.violations()).toEqual([]);
    await dialog().getByRole("button", { name: "Store item" }).click();
    await items().getByRole("button", { name: "profile" }).waitFor();
    expect((await client.store.getItem(["users", "ada"], "profile"))?.value).toEqual({
      ...{ kind: "profile", stars: 5, text: "Likes engines" },
    });
    await main().getByRole("button", { name: "New item" }).click();
    await dialog().getByLabel("Namespace").fill("users.ada");
    await dialog().getByLabel("Key").fill("profile");
    await dialog().getByRole("button", { name: "Store item" }).click();
    await dialog().getByRole("alert").getByText("An item with this key exists already").waitFor();
    await dialog().getByLabel("Namespace").fill("langgraph.mine");
    await dialog().getByRole("button", { name: "Store item" }).click();
    await dialog().getByRole("alert").getByText("reserved").waitFor();
    await dialog().getByRole("button", { name: "Close" }).click();
    expect((await client.store.getItem(["users", "ada"], "profile"))?.value).toMatchObject({ stars: 5 });
  });

  test("navigates between namespaces, and lists items and namespaces below one", async () => {
    await client.store.putItem(["users", "grace"], "profile", { kind: "profile" });
    await client.store.putItem(["users", "ada", "notes"], "first", { kind: "note" });
    await client.store.putItem(["teams"], "all", {});
    await open("/store?namespace=teams");
    await items().getByRole("button", { name: "all" }).waitFor();
    await namespaces().getByText("No namespaces below.").waitFor();
    await namespaces().getByRole("link", { name: "All" }).click();
    await namespaces().getByRole("link", { name: "users", exact: true }).click();
    await main().getByRole("heading", { name: "Items of users" }).waitFor();
    await namespaces().getByRole("link", { name: "grace" }).waitFor();
    await namespaces().getByRole("link", { name: "ada" }).click();
    await main().getByRole("heading", { name: "Items of users › ada" }).waitFor();
    await items().getByRole("row").filter({ hasText: "first" }).getByText("notes").waitFor();
    expect((await keys()).sort()).toEqual(["first", "profile"]);
    expect(await shown.violations()).toEqual([]);
  });

  test("finds items by their fields, and says if semantic search has no index", async () => {
    await open("/store?namespace=users");
    await main().getByText("By fields").click();
    const filter = main().getByLabel(/^Filter \(JSON\)/);
    await filter.fill('["kind"]');
    await main().getByText("A filter is an object.").waitFor();
    await filter.fill('{"kind": "profile", "stars": {"$gte": 3}}');
    await main().getByRole("button", { name: "Search" }).click();
    await items().getByRole("row").filter({ hasText: "grace" }).waitFor({ state: "detached" });
    expect(await keys()).toEqual(["profile"]);
    await filter.fill('{"stars": {"$near": 3}}');
    await main().getByRole("button", { name: "Search" }).click();
    await main().getByRole("alert").getByText("$near").waitFor();
    await filter.fill("");
    await main().getByLabel("By meaning").fill("machines");
    await main().getByRole("button", { name: "Search" }).click();
    await main().getByText("This server has no semantic search").waitFor();
    expect(await shown.violations()).toEqual([]);
  });

  test("shows the similarity of items if semantic search has an index", async () => {
    await shown.page.route("**/store/items/search", async (route) => {
      const answer = await route.fetch();
      const found = (await answer.json()) as { items: object[] };
      await route.fulfill({ json: { items: found.items.map((item) => ({ ...item, score: 0.8125 })) } });
    });
    await open("/store?namespace=users.grace");
    await items().getByText("0.813").waitFor();
    await shown.page.unroute("**/store/items/search");
  });

  test("lists a page at a time", async () => {
    for (let number = 0; number < 45; number += 1)
      await client.store.putItem(["many"], `item ${number}`, { number });
    await open("/store?namespace=many");
    await main().getByText("1–20").waitFor();
    const all = await keys();
    for (const range of ["21–40", "41–45"]) {
      await main().getByRole("button", { name: "Next" }).click();
      await main().getByText(range).waitFor();
      await expect.poll(async () => all.includes((await keys())[0] ?? all[0] ?? "")).toBe(false);
      all.push(...(await keys()));
    }
    expect(new Set(all).size).toBe(45);
    expect(await main().getByRole("button", { name: "Next" }).isDisabled()).toBe(true);
  });

  test("shows an item's remaining time without extending it, and keeps it in an edit", async () => {
    await client.store.putItem(["short"], "lived", { text: "<i>soon</i> gone" }, { ttl: 90 });
    const expires = async (): Promise<unknown> =>
      (
        (await (
          await fetch(`${shown.server.url}/store/items?namespace=short&key=lived&refresh_ttl=false`)
        ).json()) as { expires_at: unknown }
      ).expires_at;
    const before = await expires();
    await open("/store?namespace=short");
    await items().getByRole("cell", { name: "in 1 hour" }).waitFor();
    await items().getByRole("button", { name: "lived" }).click();
    await dialog().getByText("90 minutes after it was last read or written").waitFor();
    await dialog().getByText("<i>soon</i> gone").waitFor();
    expect(await shown.violations()).toEqual([]);
    expect(await expires()).toBe(before);
    await dialog().getByRole("button", { name: "Edit" }).click();
    expect(await dialog().getByLabel("Time to live, in minutes").inputValue()).toBe("90");
    await dialog().getByLabel("Value (JSON)").fill('{"text": "edited"}');
    expect(await shown.violations()).toEqual([]);
    await dialog().getByRole("button", { name: "Store changes" }).click();
    await dialog().waitFor({ state: "detached" });
    const item: unknown = await client.store.getItem(["short"], "lived");
    expect(item).toMatchObject({ value: { text: "edited" }, ttl: 90 });
    await items().getByRole("button", { name: "lived" }).click();
    await dialog().getByText("edited").waitFor();
    await dialog().getByRole("button", { name: "Edit" }).click();
    await dialog().getByLabel("Time to live, in minutes").fill("");
    await dialog().getByRole("button", { name: "Store changes" }).click();
    await items().getByRole("cell", { name: "never" }).waitFor();
    expect(await client.store.getItem(["short"], "lived")).not.toHaveProperty("ttl");
  });

  test("deletes an item after a confirmation", async () => {
    await open("/store?namespace=short");
    await items().getByRole("button", { name: "lived" }).click();
    await dialog().getByRole("button", { name: "Delete" }).click();
    await shown.page.getByRole("button", { name: "Delete item" }).click();
    await main().getByText("No items match.").waitFor();
    expect(await client.store.getItem(["short"], "lived")).toBeNull();
  });

  test("handles large values, long keys and names that every object has, in dark mode, on a phone", async () => {
    await client.store.putItem(["hostile", "constructor", "__proto__"], `${"k".repeat(900)}`, {
      ...{ constructor: "c", text: "x".repeat(800_000) },
    });
    await client.store.putItem(["hostile", "x".repeat(300)], "<script>alert(1)</script>", {
      hasOwnProperty: 1,
    });
    await shown.page.setViewportSize({ width: 390, height: 844 });
    await shown.page.emulateMedia({ colorScheme: "dark" });
    await open("/store?namespace=hostile");
    await namespaces().getByRole("link", { name: "constructor" }).waitFor();
    await items().getByRole("button", { name: "<script>alert(1)</script>" }).waitFor();
    expect(await shown.violations()).toEqual([]);
    expect(await shown.page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    expect(await shown.page.evaluate("document.querySelector('main').scrollWidth <= innerWidth")).toBe(true);
    await namespaces().getByRole("link", { name: "constructor" }).click();
    await namespaces().getByRole("link", { name: "__proto__" }).click();
    await items().getByRole("button", { name: /^kkk/ }).click();
    await dialog().getByRole("button", { name: "More of 800,002 characters" }).waitFor();
    expect(await shown.violations()).toEqual([]);
    await dialog().getByRole("button", { name: "Close" }).click();
  });

  test("has thrown no error, sent no request elsewhere, and broken no rule of the content policy", () => {
    expect(shown.faults).toEqual([]);
  });
});

/** Its index is of words: texts with common words are similar. */
const WITH_INDEX = fileURLToPath(new URL("../api/store/fixtures/langgraph.json", import.meta.url));
const pgvector = reasonForNoBrowser() === undefined ? await findPgvector(inject("serverUrl")) : undefined;

describe.runIf(pgvector !== undefined)("the page of a store with an index", { timeout: SLOW_MS }, () => {
  test("finds items by meaning, the most similar first, and shows the similarity", async () => {
    const database = await openPgvector(pgvector!);
    const fresh = await database.freshDatabase();
    const { connectionString } = fresh;
    const shown = await openConsole({ graphConfigFile: WITH_INDEX, connectionString });
    try {
      const { store } = new Client({ apiUrl: shown.server.url, apiKey: null });
      await store.putItem(["ada"], "loom", { text: "weaves on a loom at night" });
      await store.putItem(["ada"], "tea", { text: "likes green tea in the morning" });
      await store.putItem(["ada"], "coffee", { text: "drinks coffee in the morning" });
      await shown.go("/store?namespace=ada");
      const items = shown.page.getByRole("region", { name: "Items", exact: true });
      await shown.page.getByLabel("By meaning").fill("green tea morning");
      await shown.page.getByRole("button", { name: "Search" }).click();
      await items.getByRole("columnheader", { name: "Score" }).waitFor();
      expect(await items.locator("tbody td:first-child").allTextContents()).toEqual([
        "tea",
        "coffee",
        "loom",
      ]);
      expect(await items.locator("tbody td:nth-child(3)").allTextContents()).toEqual([
        "0.707",
        "0.258",
        "0.000",
      ]);
      expect(await shown.page.getByText("This server has no semantic search").count()).toBe(0);
      expect(await shown.violations()).toEqual([]);
      expect(shown.faults).toEqual([]);
    } finally {
      await shown.close();
      await fresh.drop();
      await database.close();
    }
  });
});
