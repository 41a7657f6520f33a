import { describe, expect, test } from "vitest";
import { Client } from "@langchain/langgraph-sdk";
import type { Locator } from "playwright-core";
import { reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { openGate } from "./graphs/gate.ts";
import { GRAPHS, onConsole } from "./on-console.ts";

const NAMESPACE = ["console", "examples"];
const QUESTION = "What is 2 + 2, and how is the weather in Rome?";

describe.skipIf(reasonForNoBrowser() !== undefined)("trying versions", { timeout: SLOW_MS }, () => {
  let shown: OpenConsole;
  let client: Client;
  const main = (): Locator => shown.page.getByRole("main");
  const dialog = (): Locator => shown.page.getByRole("dialog");
  const button = (name: string): Locator => main().getByRole("button", { name, exact: true });
  const answer = (side: "Left" | "Right"): Locator => main().getByRole("region", { name: `${side} answer` });
  /** Two versions, of which the second is active and has one tool less. */
  const revised = async (name: string): Promise<string> => {
    const { assistant_id } = await client.assistants.create({
      ...{ graphId: "agent", name, context: { tools: ["calculate", "get_weather"] } },
    });
    await client.assistants.update(assistant_id, { context: { tools: ["calculate"] } });
    return assistant_id;
  };
  const open = async (assistantId: string, tab: "try" | "examples"): Promise<void> =>
    await shown.go(`/assistants/${assistantId}?tab=${tab}`);
  const saved = async (graphId: string) =>
    (await client.store.searchItems([...NAMESPACE, graphId], { limit: 300 })).items.map(({ value }) => value);
  const store = async (graphId: string, value: Record<string, unknown>): Promise<void> =>
    await client.store.putItem([...NAMESPACE, graphId], crypto.randomUUID(), value);

  onConsole({ graphConfigFile: GRAPHS }, async (opened) => {
    shown = opened;
    client = new Client({ apiUrl: shown.server.url, apiKey: null });
    await shown.page.getByRole("navigation").waitFor();
  });

  test("runs the same message on two versions by the keyboard, and marks how the answers differ", async () => {
    await open(await revised("Tried"), "try");
    await main().getByLabel("Message", { exact: true }).fill(QUESTION);
    await shown.page.keyboard.press("Control+Enter");
    await main().getByText("The two answers differ.").waitFor();
    await answer("Left").locator("del", { hasText: "Rome" }).waitFor();
    await answer("Right").getByText("2 + 2 = 4").waitFor();
    for (const side of ["Left", "Right"] as const) {
      await answer(side).getByText("success").waitFor();
      await answer(side)
        .getByText(/\d+ tokens$/)
        .waitFor();
      await answer(side)
        .getByText(/\d (ms|s)$/)
        .waitFor();
    }
    expect(await shown.violations()).toEqual([]);
    await main().getByLabel("Mark differences").uncheck();
    expect(await main().locator("del, ins").count()).toBe(0);
    expect(await client.threads.search()).toEqual([]);
  });

  test("keeps the answers when another tab is opened, and compares other versions", async () => {
    await main().getByRole("tab", { name: "Configuration" }).click();
    await main().getByRole("tab", { name: "Try" }).click();
    expect(await main().getByLabel("Message", { exact: true }).inputValue()).toBe(QUESTION);
    await main().getByRole("combobox", { name: "Left" }).selectOption("2");
    await button("Run both").click();
    await main().getByText("The two answers are equal.").waitFor();
  });

  test("says which fields a version takes from the default assistant of its graph", async () => {
    const [ofGraph] = await client.assistants.search({
      graphId: "agent",
      metadata: { created_by: "system" },
    });
    const defaultId = ofGraph?.assistant_id ?? "";
    await client.assistants.update(defaultId, { config: { recursion_limit: 50 } });
    await open(await revised("Inheriting"), "try");
    // The page keeps what it has read of the default assistant for some seconds.
    await shown.page.reload();
    await main().getByText("It gets from there what it does not set itself: recursion_limit.").waitFor();
    await client.assistants.setLatest(defaultId, 1);
  });

  test("runs the first version of a default assistant without what its active version sets", async () => {
    const [ofGraph] = await client.assistants.search({
      graphId: "agent",
      metadata: { created_by: "system" },
    });
    const defaultId = ofGraph?.assistant_id ?? "";
    const { version } = await client.assistants.update(defaultId, { context: { tools: ["calculate"] } });
    await open(defaultId, "try");
    await shown.page.reload();
    await main().getByRole("combobox", { name: "Left" }).selectOption("1");
    await main().getByRole("combobox", { name: "Right" }).selectOption(String(version));
    await main().getByLabel("Message", { exact: true }).fill(QUESTION);
    await button("Run both").click();
    await main().getByText("The two answers differ.").waitFor();
    expect(await main().getByText("It gets from there").count()).toBe(0);
    await client.assistants.setLatest(defaultId, 1);
  });

  test("saves the message and an answer as an example", async () => {
    await open(await revised("Saved"), "try");
    await main().getByLabel("Message", { exact: true }).fill("What is 3 + 4?");
    await button("Run both").click();
    await main().getByText("The two answers are equal.").waitFor();
    await button("Save as example").click();
    await dialog().getByLabel("Name (optional)").fill("Seven");
    await dialog().getByRole("button", { name: "Use the answer of version 2" }).click();
    expect(await shown.violations()).toEqual([]);
    await dialog().getByRole("button", { name: "Save example" }).click();
    await dialog().waitFor({ state: "detached" });
    expect(await saved("agent")).toEqual([
      {
        ...{ name: "Seven", expected: "3 + 4 = 7", created_at: expect.any(String) as string },
        input: { messages: [{ role: "user", content: "What is 3 + 4?" }] },
      },
    ]);
  });

  test("runs all examples on two versions, and compares each answer with the expected one", async () => {
    await store("agent", { name: "Unsure", input: { messages: [{ role: "user", content: QUESTION }] } });
    await open(await revised("Run on all"), "examples");
    const row = (name: string): Locator => main().getByRole("row").filter({ hasText: name });
    await row("Seven").waitFor();
    await main().getByLabel("Compare with").selectOption("1");
    await button("Run all").click();
    await main().getByText("4 of 4").waitFor();
    expect(await row("Seven").getByText("Same as the expected answer").count()).toBe(2);
    await row("Unsure").getByText("Differs from version 2").waitFor();
    expect(await shown.violations()).toEqual([]);
    await row("Unsure").getByRole("button", { name: "Actions of the example Unsure" }).click();
    await shown.page.getByRole("menuitem", { name: "Expect the answer of version 2" }).click();
    await row("Unsure").getByText("Same as the expected answer").waitFor();
    await row("Unsure").getByText("Differs from the expected answer").waitFor();
  });

  test("changes and deletes an example", async () => {
    const row = main().getByRole("row").filter({ hasText: "Unsure" });
    await row.getByRole("button", { name: "Actions of the example Unsure" }).click();
    await shown.page.getByRole("menuitem", { name: "Edit" }).click();
    await dialog().getByLabel("Name (optional)").fill("Sure");
    await dialog().getByLabel("Message", { exact: true }).fill("What is 1 + 1?");
    await dialog().getByRole("button", { name: "Save example" }).click();
    await main().getByText("What is 1 + 1?").waitFor();
    await main().getByRole("button", { name: "Actions of the example Sure" }).click();
    await shown.page.getByRole("menuitem", { name: "Delete" }).click();
    await dialog().getByRole("button", { name: "Delete example" }).click();
    await main().getByText("What is 1 + 1?").waitFor({ state: "detached" });
    expect(await saved("agent")).toHaveLength(1);
  });

  test("offers to add the first example, written as JSON", async () => {
    await open("gated", "examples");
    await main().getByRole("heading", { name: "No examples yet" }).waitFor();
    expect(await shown.violations()).toEqual([]);
    await button("New example").click();
    await dialog().getByRole("tab", { name: "JSON" }).click();
    await dialog().getByLabel("Input (JSON)").fill('{"text": "in"}');
    await dialog().getByRole("button", { name: "Save example" }).click();
    await main().getByText('{"text":"in"}').waitFor();
    expect(await saved("gated")).toMatchObject([{ name: "", input: { text: "in" } }]);
  });

  test("runs three examples at once, and stops all", async () => {
    for (let number = 1; number <= 4; number += 1)
      await store("gated", { name: `Held ${number}`, input: { text: "x" } });
    await open("gated", "examples");
    await shown.page.reload();
    await main().getByText("Held 4").waitFor();
    await button("Run all").click();
    await main().getByText("0 of 5").waitFor();
    const table = main().getByRole("region", { name: "Table of examples" });
    await expect.poll(() => table.locator('[data-status="running"]').count()).toBe(3);
    expect(await shown.violations()).toEqual([]);
    await button("Stop").click();
    await button("Run all").waitFor();
    expect(await table.locator('[data-status="stopped"]').count()).toBe(3);
    openGate();
  });

  test("shows the error of a run", async () => {
    await open("failing", "try");
    await main().getByLabel("Message", { exact: true }).fill("Hello");
    await button("Run").click();
    await main().getByRole("region", { name: "Answer" }).getByText("This graph always fails.").waitFor();
    expect(await shown.violations()).toEqual([]);
  });

  test.each([
    [404, "counter", "Examples are kept in the store, which this server does not offer."],
    [403, "nested", "Examples are kept in the store, which you may not use."],
  ])("says in words that the store answers with %i", async (status, graph, sentence) => {
    await shown.page.route("**/store/items/search", (route) => route.fulfill({ status, body: "{}" }));
    await open(graph, "examples");
    await main().getByRole("alert").getByText(sentence).waitFor();
    await shown.page.unroute("**/store/items/search");
    await main().getByRole("button", { name: "Try again" }).click();
    await main().getByRole("heading", { name: "No examples yet" }).waitFor();
  });

  test("bounds hostile examples, on a phone, in dark mode", async () => {
    await store("large", { input: { constructor: "x".repeat(500_000) }, expected: 7, name: { a: 1 } });
    await store("large", { name: "n".repeat(5_000), expected: "<b>".repeat(50_000) });
    await shown.page.setViewportSize({ width: 390, height: 844 });
    await shown.page.emulateMedia({ colorScheme: "dark" });
    await open("large", "examples");
    await main().getByText('{"constructor":"xxx').waitFor();
    expect(await shown.violations()).toEqual([]);
    expect(await shown.page.evaluate("document.querySelector('main').scrollWidth <= innerWidth")).toBe(true);
    expect(await shown.page.evaluate("document.querySelector('main').textContent.length")).toBeLessThan(
      5_000,
    );
    await open(await revised("On a phone"), "try");
    await button("Run both").waitFor();
    expect(await shown.violations()).toEqual([]);
    expect(await shown.page.evaluate("document.querySelector('main').scrollWidth <= innerWidth")).toBe(true);
  });

  test("has thrown no error, sent no request elsewhere, and broken no rule of its content policy", () => {
    expect(shown.faults).toEqual([]);
  });
});
