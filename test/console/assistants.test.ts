import { describe, expect, test } from "vitest";
import { Client, type Assistant } from "@langchain/langgraph-sdk";
import type { Locator } from "playwright-core";
import { reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { onConsole } from "./on-console.ts";

describe.skipIf(reasonForNoBrowser() !== undefined)("the page of assistants", { timeout: SLOW_MS }, () => {
  let shown: OpenConsole;
  let client: Client;
  const main = (): Locator => shown.page.getByRole("main");
  const dialog = (): Locator => shown.page.getByRole("dialog");
  const button = (name: string): Locator => main().getByRole("button", { name, exact: true });
  const openOne = async (
    { assistant_id, name }: Pick<Assistant, "assistant_id" | "name">,
    tab = "configuration",
  ): Promise<void> => {
    await shown.go(`/assistants/${assistant_id}?tab=${tab}`);
    // The page shows the beginning of a long name.
    await main()
      .getByRole("heading", { level: 1, name: name.slice(0, 100) })
      .waitFor();
    await main()
      .getByRole("tab", { name: /^Versions \d+$/ })
      .waitFor();
  };
  /** Two versions, of which the second is active. */
  const revised = async (name: string): Promise<Assistant> => {
    const { assistant_id } = await client.assistants.create({
      ...{ graphId: "agent", name },
      context: { system_prompt: "Be friendly.\nBe short.", tools: ["calculate"] },
    });
    return await client.assistants.update(assistant_id, {
      context: { system_prompt: "Be exact.", model_name: "offline" },
    });
  };

  onConsole({}, async (opened) => {
    shown = opened;
    client = new Client({ apiUrl: shown.server.url, apiKey: null });
    await shown.page.getByRole("navigation").waitFor();
  });

  test("lists them in pages, by a part of the name and by graph", async () => {
    for (let number = 1; number <= 21; number += 1)
      await client.assistants.create({ graphId: "research", name: `Reader ${number}` });
    await client.assistants.create({ graphId: "approval", name: "<b>Reader</b> of drafts" });
    await shown.go("/assistants");
    await main().getByLabel("Name").fill("reader");
    await main().getByText("1–20 of 22").waitFor();
    await main().getByRole("link", { name: "<b>Reader</b> of drafts" }).waitFor();
    expect(await shown.violations()).toEqual([]);
    await button("Next").click();
    await main().getByText("21–22 of 22").waitFor();
    await main().getByRole("link", { name: "Reader 1", exact: true }).waitFor();
    await main().getByLabel("Graph").selectOption("approval");
    await main().getByRole("link", { name: "Reader 1", exact: true }).waitFor({ state: "detached" });
    expect(await main().getByRole("row").count()).toBe(2);
    await main().getByLabel("Name").fill("nobody has this name");
    await main().getByText("No assistant matches.").waitFor();
  });

  test("moves through the list with J and K, opens one with Enter, and shows all again", async () => {
    await shown.go("/assistants");
    await main().getByLabel("Name").fill("nobody has this name");
    await button("Show all assistants").click();
    const links = main().getByRole("row").getByRole("link");
    await links.nth(2).waitFor();
    const name = (await links.nth(1).textContent()) ?? "";
    await main().getByRole("heading", { level: 1 }).click();
    for (const key of ["j", "j", "j", "k"]) await shown.page.keyboard.press(key);
    await shown.page.keyboard.press("Enter");
    await main().getByRole("heading", { level: 1, name }).waitFor();
  });

  test("creates one with the form of its graph's context, and opens it", async () => {
    await shown.go("/assistants");
    await button("New assistant").click();
    await dialog().getByLabel("Graph").selectOption("agent");
    await dialog().getByLabel("Name", { exact: true }).fill("Counting");
    await dialog().getByLabel("Description").fill("Counts for people.");
    await dialog().getByLabel("system_prompt").fill("Count.\nSay the number alone.");
    await dialog().getByLabel("calculate").check();
    await dialog().getByText("Config and metadata").click();
    await dialog().getByLabel("Metadata (JSON)").fill('{"team": "numbers"}');
    expect(await shown.violations()).toEqual([]);
    // A double click must still create only one.
    await dialog().getByRole("button", { name: "Create assistant" }).dblclick();
    await main().getByRole("heading", { level: 1, name: "Counting" }).waitFor();
    const [made, another] = await client.assistants.search({ name: "Counting" });
    expect(another).toBeUndefined();
    expect(made).toMatchObject({
      ...{ graph_id: "agent", description: "Counts for people.", version: 1 },
      context: { system_prompt: "Count.\nSay the number alone.", tools: ["calculate"] },
      metadata: { team: "numbers" },
    });
  });

  test("shows the server's message when one can't be created, and keeps the input", async () => {
    await shown.go("/assistants");
    await button("New assistant").click();
    await dialog().getByLabel("Name", { exact: true }).fill("Deep");
    await dialog().getByText("Config and metadata").click();
    await dialog().getByLabel("Config (JSON)").fill('{"recursion_limit": 99999999}');
    await dialog().getByRole("button", { name: "Create assistant" }).click();
    await dialog().getByRole("alert").getByText("recursion_limit").waitFor();
    expect(await dialog().getByLabel("Name", { exact: true }).inputValue()).toBe("Deep");
    await dialog().getByRole("button", { name: "Close" }).click();
  });

  test("says that an edit creates a new version from the input alone", async () => {
    const assistant = await revised("Support");
    await openOne(assistant);
    await button("Edit").click();
    await dialog().getByText("Saving creates version 3 and activates it.").waitFor();
    await dialog().getByLabel("system_prompt").waitFor();
    await shown.page.setViewportSize({ width: 1280, height: 600 });
    const save = await dialog().getByRole("button", { name: "Save as version 3" }).boundingBox();
    expect((save?.y ?? 600) + (save?.height ?? 0)).toBeLessThan(600);
    await dialog().getByLabel("model_name").fill("");
    await dialog().getByLabel("system_prompt").fill("Be kind.");
    expect(await shown.violations()).toEqual([]);
    await dialog().getByRole("button", { name: "Save as version 3" }).click();
    await main().getByText("Version 3 is active").waitFor();
    const { context, version } = await client.assistants.get(assistant.assistant_id);
    expect({ context, version }).toEqual({ context: { system_prompt: "Be kind." }, version: 3 });
    await main().getByRole("tab", { name: "Versions" }).click();
    await main()
      .getByRole("row", { name: /^3 active/ })
      .waitFor();
  });

  test("warns before saving that another user has saved meanwhile, and saves after a second confirmation", async () => {
    const assistant = await revised("Shared");
    await openOne(assistant);
    await button("Edit").click();
    await dialog().getByLabel("system_prompt").fill("Mine.");
    await client.assistants.update(assistant.assistant_id, { context: { system_prompt: "Theirs." } });
    await dialog()
      .getByRole("button", { name: /^Save as version/ })
      .click();
    await dialog().getByRole("alert").getByText("version 3 is active now").waitFor();
    expect((await client.assistants.get(assistant.assistant_id)).version).toBe(3);
    expect(await dialog().getByLabel("system_prompt").inputValue()).toBe("Mine.");
    expect(await shown.violations()).toEqual([]);
    await dialog().getByRole("button", { name: "Save as version 4" }).click();
    await main().getByText("Version 4 is active").waitFor();
    expect((await client.assistants.get(assistant.assistant_id)).context).toMatchObject({
      system_prompt: "Mine.",
    });
  });

  test("shows two versions side by side, with their difference in words", async () => {
    await openOne(await revised("Compared"), "versions");
    const differences = main().getByRole("list", { name: "Differences" });
    const field = (name: string): Locator => differences.getByRole("listitem").filter({ hasText: name });
    await field("context › system_prompt").getByText("changed").waitFor();
    await field("context › system_prompt").locator("del", { hasText: "friendly" }).waitFor();
    await field("context › system_prompt").locator("ins", { hasText: "exact" }).waitFor();
    await field("context › tools").getByText("only in version 1").waitFor();
    await field("context › model_name").getByText("only in version 2").waitFor();
    expect(await field("graph_id").count()).toBe(0);
    await main().getByLabel("Show equal fields").check();
    await field("graph_id").getByText("same").waitFor();
    expect(await shown.violations()).toEqual([]);
    await main().getByLabel("Show equal fields").uncheck();
    await main().getByLabel("Compare").selectOption("2");
    await main().getByText("The two versions are equal.").waitFor();
  });

  test("marks what changed in a list, line by line, with signs", async () => {
    const { assistant_id, name } = await revised("Listed");
    await client.assistants.update(assistant_id, { context: { tools: ["calculate"] } });
    await client.assistants.update(assistant_id, { context: { tools: ["calculate", "get_weather"] } });
    await openOne({ assistant_id, name }, "versions");
    const added = main().getByRole("list", { name: "Differences" }).locator("ins");
    await added.getByText('+   "get_weather"').waitFor();
    expect(await added.count()).toBe(1);
  });

  test("activates an earlier version after a confirmation", async () => {
    const assistant = await revised("Back again");
    await openOne(assistant, "versions");
    await button("Activate version 1").click();
    await dialog().getByRole("button", { name: "Go back" }).click();
    await button("Activate version 1").click();
    await dialog().getByRole("button", { name: "Activate version 1" }).click();
    await main().getByText("Version 1 is active").waitFor();
    await main().getByRole("tab", { name: "Configuration" }).click();
    await main().getByText("Be friendly.\nBe short.").waitFor();
    expect(await client.assistants.get(assistant.assistant_id)).toMatchObject({ version: 1 });
  });

  test("links to the graph and to the playground", async () => {
    const assistant = await revised("In use");
    await openOne(assistant);
    expect(await main().getByRole("link", { name: "agent" }).getAttribute("href")).toBe(
      `#/graph/${assistant.assistant_id}`,
    );
    await main().getByRole("link", { name: "Use in the playground" }).click();
    const chosen = main().getByLabel("Assistant", { exact: true });
    await chosen.locator("option:checked").getByText("In use").waitFor({ state: "attached" });
  });

  test("deletes one with all its versions and, if requested, its threads", async () => {
    const [kept, gone] = [await revised("With a thread"), await revised("Without threads")];
    const thread = await client.threads.create();
    await client.runs.wait(thread.thread_id, kept.assistant_id, {
      input: { messages: [{ role: "user", content: "Hello" }] },
    });
    for (const [assistant, withThreads] of [
      [gone, false],
      [kept, true],
    ] as const) {
      await openOne(assistant);
      await button("More actions").click();
      await shown.page.getByRole("menuitem", { name: "Delete" }).click();
      await dialog().getByText("This deletes all its versions").waitFor();
      expect(await shown.violations()).toEqual([]);
      await dialog().getByLabel("Also delete the threads").setChecked(withThreads);
      await dialog().getByRole("button", { name: "Delete assistant" }).click();
      await main().getByRole("heading", { level: 1, name: "Assistants" }).waitFor();
      await expect(client.assistants.get(assistant.assistant_id)).rejects.toThrow("404");
    }
    await expect(client.threads.get(thread.thread_id)).rejects.toThrow("404");
  });

  test("says why the system assistant of a graph can't be deleted", async () => {
    const [ofGraph] = await client.assistants.search({
      graphId: "agent",
      metadata: { created_by: "system" },
    });
    await openOne(ofGraph ?? { assistant_id: "", name: "" });
    await main().getByText("This is the default assistant of its graph").waitFor();
    expect(await button("More actions").count()).toBe(0);
  });

  test("says that there is none if the address names a missing one", async () => {
    await shown.go("/assistants/00000000-0000-4000-8000-000000000000");
    await main().getByRole("heading", { name: "This assistant does not exist" }).waitFor();
    expect(await main().getByRole("tab").count()).toBe(0);
    expect(await shown.violations()).toEqual([]);
  });

  test("handles a context of nearly a megabyte and names that every object has, in dark mode, on a phone", async () => {
    const assistant = await client.assistants.create({
      ...{ graphId: "agent", name: `${"long".repeat(60)}` },
      context: {
        system_prompt: "x".repeat(900_000),
        constructor: { toString: "<img src=x onerror=alert(1)>" },
      },
    });
    await client.assistants.update(assistant.assistant_id, {
      context: { system_prompt: "y".repeat(900_000) },
    });
    await shown.page.setViewportSize({ width: 390, height: 844 });
    await shown.page.emulateMedia({ colorScheme: "dark" });
    await openOne(assistant, "versions");
    await main()
      .getByRole("list", { name: "Differences" })
      .getByRole("listitem")
      .filter({ hasText: "context › constructor › toString" })
      .getByText("<img src=x onerror=alert(1)>")
      .waitFor();
    expect(await shown.violations()).toEqual([]);
    expect(await shown.page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    expect(await shown.page.evaluate("document.querySelector('main').scrollWidth <= innerWidth")).toBe(true);
    await button("Edit").click();
    await dialog().getByText("No form is available: it is too long for a form.").waitFor();
    expect(await shown.violations()).toEqual([]);
    await dialog().getByRole("button", { name: "Close" }).click();
    await shown.go("/assistants");
    await main().getByRole("table").waitFor();
    expect(await shown.violations()).toEqual([]);
  });

  test("has thrown no error, sent no request elsewhere, and broken no rule of its content policy", () => {
    expect(shown.faults).toEqual([]);
  });
});
