import { Client } from "@langchain/langgraph-sdk";
import { describe, expect, test } from "vitest";
import { eventually } from "../helpers/conditions.ts";
import { reasonForNoBrowser, SLOW_MS, violationsIn, type OpenConsole } from "./browser.ts";
import { openGate } from "./graphs/gate.ts";
import { GRAPHS, onConsole } from "./on-console.ts";

const WIDTHS = `(() => {
  const main = document.querySelector("main");
  return [document.documentElement.scrollWidth, main.scrollWidth <= main.clientWidth];
})()`;

describe.skipIf(reasonForNoBrowser() !== undefined)("the page of time travel", { timeout: SLOW_MS }, () => {
  let shown: OpenConsole;
  let client: Client;
  onConsole(
    {
      graphConfigFile: GRAPHS,
      context: { permissions: ["clipboard-read", "clipboard-write"] },
    },
    (opened) => {
      shown = opened;
      client = new Client({ apiUrl: shown.server.url, apiKey: null });
    },
  );

  const aThread = async (assistantId: string, input: Record<string, unknown>): Promise<string> => {
    const { thread_id: threadId } = await client.threads.create();
    await client.runs.wait(threadId, assistantId, { input, raiseError: false });
    return threadId;
  };
  const aDraft = (): Promise<string> =>
    aThread("approval", { messages: [{ role: "user", content: "looms" }] });
  const idsOf = async (threadId: string): Promise<string[]> =>
    (await client.threads.getHistory(threadId, { limit: 100 })).map(
      ({ checkpoint }) => checkpoint.checkpoint_id ?? "",
    );
  const open = async (threadId: string): Promise<void> => {
    await shown.go(`/threads/${threadId}/history`);
    await items().first().waitFor();
  };
  const items = () => shown.page.getByRole("treeitem");
  const item = (id: string) => shown.page.locator(`[data-checkpoint="${id}"]`);
  const changes = () => shown.page.getByRole("list", { name: "Differences" }).locator("> li");
  const closed = () => shown.page.locator("[role=treeitem][aria-expanded=false]");
  const openTurns = async (): Promise<void> => {
    while ((await closed().count()) > 0) {
      const before = await closed().count();
      await closed().first().click();
      await expect.poll(() => closed().count()).toBe(before - 1);
    }
  };
  /** Titles and levels of the tree, as a screen reader gets them. */
  const tree = (): Promise<string[]> =>
    items().evaluateAll((all) =>
      all.map((each) => {
        const title = each.querySelector("strong, [data-title]")?.textContent ?? "";
        return `${each.getAttribute("aria-level") ?? ""} ${title}`;
      }),
    );

  test("shows checkpoints as a tree of forks, the newest branch first, with their writers and next nodes", async () => {
    const { page } = shown;
    const threadId = await aDraft();
    await client.threads.updateState(threadId, { values: { draft: "Mine." }, asNode: "write" });
    const written = (await client.threads.getHistory(threadId)).find(({ next }) => next[0] === "write");
    await client.runs.wait(threadId, "approval", {
      input: null,
      checkpointId: written?.checkpoint.checkpoint_id ?? "",
    });
    await open(threadId);
    await page.getByRole("heading", { name: "Step 2 · loop" }).waitFor();
    // The newest turn is open.
    await eventually(
      "the turns have their titles",
      async () =>
        (await tree()).join() ===
        "1 Continued,2 Step 2 · loop,2 Step 1 · fork,2 Step 2 · update,2 looms,1 looms",
    );
    expect(await shown.violations()).toEqual([]);
    await openTurns();
    expect(await tree()).toEqual([
      "1 Continued",
      "2 Step 2 · loop",
      "2 Step 1 · fork",
      "2 Step 2 · update",
      "2 looms",
      "3 Step 1 · loop",
      "1 looms",
      "2 Step 0 · loop",
      "2 Step -1 · input",
    ]);
    expect(await items().nth(1).textContent()).toMatch(/wrote: write · next: review · waits for an answer/);
    expect(await items().nth(3).textContent()).toMatch(/Branch 2, from step 0, 2 checkpoints/);
    expect(await items().nth(5).textContent()).toMatch(/had an interrupt/);
    expect(await items().nth(7).textContent()).toMatch(/2 branches/);
    expect(await shown.violations()).toEqual([]);
  });

  test("shows the state of a checkpoint, its next nodes with their questions, and copies its id", async () => {
    const { page } = shown;
    const threadId = await aDraft();
    const [newest = ""] = await idsOf(threadId);
    await open(threadId);
    await page.getByText("Waits for an answer:").waitFor();
    await page.getByText('"Send this draft?"').waitFor();
    await page.getByRole("button", { name: "Copy id" }).click();
    await page.getByText("Copied.").waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(newest);
    expect(await page.getByRole("link", { name: "Continue in the playground" }).getAttribute("href")).toBe(
      `#/threads/${threadId}`,
    );
  });

  test("describes the difference from the previous checkpoint, and from any other", async () => {
    const { page } = shown;
    const threadId = await aDraft();
    const ids = await idsOf(threadId);
    await open(threadId);
    await changes().first().waitFor();
    expect(await changes().allTextContents()).toEqual([
      'Changed draftadded: Dear customer, about your request "looms": we take care of it.',
    ]);
    await page.getByLabel("Compared with").selectOption({ index: 2 });
    await changes().nth(1).waitFor();
    expect(
      await changes()
        .filter({ hasText: /^Added messages › 0/ })
        .count(),
    ).toBe(1);
    expect(
      await changes()
        .filter({ hasText: /^Changed draft/ })
        .count(),
    ).toBe(1);
    // The other way round: mark one, then select another.
    await page.getByRole("button", { name: "Compare others with this checkpoint" }).click();
    await page.getByText("Select another checkpoint in the list").waitFor();
    await item(ids.at(-1) ?? "").click();
    await changes().filter({ hasText: "Removed" }).first().waitFor();
    expect(await changes().filter({ hasText: "draft" }).textContent()).toContain("removed: Dear customer");
    expect(await shown.violations()).toEqual([]);
  });

  test("limits the differences of long texts and lists", async () => {
    const { page } = shown;
    const { thread_id: threadId } = await client.threads.create({ graphId: "gated" });
    const list = (start: number) => Array.from({ length: 1_500 }, (_, place) => `line ${start + place * 7}`);
    await client.threads.updateState(threadId, {
      values: { text: "a".repeat(900_000), done: list(0) },
      asNode: "finish",
    });
    await client.threads.updateState(threadId, {
      values: { text: `${"a".repeat(450_000)}<b>constructor</b>${"a".repeat(450_000)}`, done: list(3) },
      asNode: "finish",
    });
    await open(threadId);
    await changes().nth(49).waitFor();
    expect(await changes().count()).toBe(50);
    const text = await changes().filter({ hasText: "Changed text" }).textContent();
    expect(text).toContain("added: <b>constructor</b>");
    expect(text?.length).toBeLessThan(400);
    await page.getByRole("button", { name: /^1,?\d+ more$/ }).click();
    await changes().nth(99).waitFor();
    expect(await shown.violations()).toEqual([]);
  });

  test("stores an edited state as a fork, as a selected node", async () => {
    const { page } = shown;
    const threadId = await aDraft();
    await open(threadId);
    await page.getByRole("button", { name: "Edit state…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("draft").fill("By hand.");
    await dialog.getByText("Changed: draft.").waitFor();
    await dialog.getByLabel("As node").selectOption("write");
    expect(await shown.violations()).toEqual([]);
    await dialog.getByRole("button", { name: "Store as new checkpoint" }).click();
    await page.getByRole("heading", { name: "Step 2 · update" }).waitFor();
    await items().filter({ hasText: "Step 2 · update" }).waitFor();
    expect((await changes().allTextContents()).join()).toContain("added: By hand.");
    const { values, next } = await client.threads.getState<{ draft: string }>(threadId);
    expect([values.draft, next]).toEqual(["By hand.", ["review"]]);
  });

  test("edits a state as JSON, and writes only the changes", async () => {
    const { page } = shown;
    const threadId = await aThread("counter", {});
    await open(threadId);
    await page.getByRole("button", { name: "Edit state…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("tab", { name: "JSON" }).click();
    await dialog.getByRole("textbox").fill('{"messages": [], "count": 5}');
    await dialog.getByText("Changed: count.").waitFor();
    await dialog.getByRole("button", { name: "Store as new checkpoint" }).click();
    await dialog.waitFor({ state: "detached" });
    const { values } = await client.threads.getState<{ count: number }>(threadId);
    // Its reducer adds.
    expect(values.count).toBe(6);
  });

  test("warns before storing a state that another user has stored one meanwhile, and stores it after a second confirmation", async () => {
    const { page } = shown;
    const threadId = await aDraft();
    await open(threadId);
    const asked = page.waitForResponse((response) => response.url().includes("/state?select=checkpoint"));
    await page.getByRole("button", { name: "Edit state…" }).click();
    await asked;
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("draft").fill("Mine.");
    await client.threads.updateState(threadId, { values: { draft: "Theirs." }, asNode: "write" });
    await dialog.getByRole("button", { name: "Store as new checkpoint" }).click();
    await dialog.getByRole("alert").getByText("The thread has changed since you opened it").waitFor();
    expect((await client.threads.getState<{ draft: string }>(threadId)).values.draft).toBe("Theirs.");
    expect(await shown.violations()).toEqual([]);
    await dialog.getByRole("button", { name: "Store as new checkpoint" }).click();
    await dialog.waitFor({ state: "detached" });
    expect((await client.threads.getState<{ draft: string }>(threadId)).values.draft).toBe("Mine.");
  });

  test("continues from a checkpoint, and shows the resulting branch", async () => {
    const { page } = shown;
    const threadId = await aThread("counter", { count: 10 });
    const history = await client.threads.getHistory(threadId);
    const due = history.find(({ next }) => next[0] === "increment");
    await open(threadId);
    await item(due?.checkpoint.checkpoint_id ?? "").click();
    await page.getByText("Next: increment.").waitFor();
    await page.getByRole("button", { name: "Run from here" }).click();
    await page.getByRole("status").locator("[data-status=success]").waitFor();
    await eventually("the branch is there", async () => (await items().count()) >= 4);
    await openTurns();
    await eventually(
      "all steps are there",
      async () =>
        (await tree()).filter((title) => title.includes("Step")).join() ===
        "2 Step 2 · loop,2 Step 1 · fork,3 Step 1 · loop,2 Step 0 · loop,2 Step -1 · input",
    );
    expect(await shown.violations()).toEqual([]);
  });

  test("starts a run from a checkpoint with new input", async () => {
    const { page } = shown;
    const threadId = await aThread("counter", { count: 10 });
    const oldest = (await idsOf(threadId)).at(-2) ?? "";
    await open(threadId);
    await item(oldest).click();
    await page.getByRole("button", { name: "Run with new input…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("tab", { name: "JSON" }).click();
    await dialog.getByRole("textbox").fill('{"count": 100}');
    await dialog.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByRole("status").locator("[data-status=success]").waitFor();
    const { values } = await client.threads.getState<{ count: number }>(threadId);
    expect(values.count).toBe(111);
  });

  test("shows the steps of a run live, and meanwhile refuses to edit or run with a message", async () => {
    const { page } = shown;
    const { thread_id: threadId } = await client.threads.create();
    await client.runs.create(threadId, "gated", { input: { text: "hello" } });
    await eventually("it waits", async () => (await client.threads.getHistory(threadId)).length > 1);
    await open(threadId);
    await page.locator("h1 ~ [data-status=busy]").waitFor();
    await page.getByRole("button", { name: "Run from here" }).click();
    await page
      .getByRole("alert")
      .getByText(/thread/i)
      .first()
      .waitFor();
    await page.getByRole("button", { name: "Edit state…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("As node").selectOption("finish");
    await dialog.getByRole("button", { name: "Store as new checkpoint" }).click();
    expect(await dialog.getByRole("alert").textContent()).toMatch(/run|busy/);
    expect(await shown.violations()).toEqual([]);
    await dialog.getByRole("button", { name: "Close" }).click();
    await eventually("the gate is open", () => openGate() > 0);
    await items().filter({ hasText: "wrote: finish" }).waitFor();
    await page.locator("h1 ~ [data-status=idle]").waitFor();
  });

  test("opens subgraphs within the thread, and returns", async () => {
    const { page } = shown;
    const threadId = await aThread("research", { messages: [{ role: "user", content: "looms" }] });
    await open(threadId);
    await items().filter({ hasText: "next: investigate ×3" }).click();
    await page.getByRole("button", { name: "Open its graph" }).first().click();
    await items().filter({ hasText: "wrote: search" }).waitFor();
    await page
      .getByRole("navigation", { name: "Subgraphs of the thread" })
      .getByText("investigate")
      .waitFor();
    expect(await shown.violations()).toEqual([]);
    await page.getByRole("button", { name: "The thread" }).click();
    await items().filter({ hasText: "next: investigate ×3" }).waitFor();
  });

  test("starts a run from the step that called a subgraph, which begins again", async () => {
    const { page } = shown;
    const threadId = await aThread("research", { messages: [{ role: "user", content: "looms" }] });
    await open(threadId);
    await items().filter({ hasText: "next: investigate ×3" }).click();
    await page.getByRole("button", { name: "Open its graph" }).first().click();
    await items().filter({ hasText: "next: read" }).click();
    await page.getByText("Next: read.").waitFor();
    expect(await page.getByRole("button", { name: "Run with new input…" }).count()).toBe(0);
    await page.getByRole("button", { name: "Run from the step that called this graph" }).click();
    await page.getByRole("status").locator("[data-status=success]").waitFor();
    await items().filter({ hasText: "· fork" }).waitFor();
    await closed().first().waitFor();
    expect(await shown.violations()).toEqual([]);
  });

  test("keeps no state in memory that is not visible", async () => {
    const { page } = shown;
    const threadId = await aDraft();
    const ids = await idsOf(threadId);
    const asked: string[] = [];
    page.on("request", (request) => {
      if (!/\/state(\/|$)/.test(new URL(request.url()).pathname)) return;
      asked.push(request.url() + (request.postData() ?? ""));
    });
    await open(threadId);
    // Each is shown beside the previous one.
    for (const place of [0, 1, 0]) {
      await item(ids[place] ?? "").click();
      await page
        .locator("code")
        .getByText(ids[place] ?? "", { exact: true })
        .waitFor();
      await changes().first().waitFor();
    }
    expect(asked.filter((request) => request.includes(ids[0] ?? "")).length).toBe(2);
  });

  test("keeps the input of a dialog while other clients continue the thread", async () => {
    const { page } = shown;
    const threadId = await aThread("counter", {});
    for (const opener of ["Edit state…", "Run with new input…"]) {
      await open(threadId);
      await page.getByRole("button", { name: opener }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByRole("tab", { name: "JSON" }).click();
      const text = dialog.getByRole("textbox");
      await text.fill('{"count": 4711}');
      // A dialog hides the page behind it from screen readers.
      const behind = page.locator("[role=treeitem]");
      const before = await behind.count();
      await client.runs.wait(threadId, "counter", { input: {} });
      await behind.nth(before).waitFor({ state: "attached" });
      expect(await text.inputValue()).toBe('{"count": 4711}');
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
    }
  });

  test("shows why a run failed", async () => {
    const { page } = shown;
    const threadId = await aThread("failing", { reason: "out of yarn" });
    await open(threadId);
    await page.getByText("Failed: out of yarn").waitFor();
  });

  test("loads 500 checkpoints in pages, draws only the visible ones, and supports the keyboard", async () => {
    const { page } = shown;
    const { thread_id: threadId } = await client.threads.create({
      graphId: "counter",
      supersteps: Array.from({ length: 500 }, () => ({
        updates: [{ values: { count: 1 }, asNode: "increment" }],
      })),
    });
    await open(threadId);
    const loaded = page.getByText(/^\d+ checkpoints/);
    for (let pages = 2; pages <= 5; pages += 1) {
      await page.getByRole("button", { name: "More" }).click();
      await loaded.filter({ hasText: new RegExp(`^${pages * 100} checkpoints`) }).waitFor();
    }
    expect(await items().count()).toBeLessThan(60);
    const list = page.getByRole("tree");
    await list.focus();
    await list.press("End");
    await items()
      .filter({ hasText: "Step 0 ·" })
      .or(items().filter({ hasText: "Step -1 ·" }))
      .first()
      .waitFor();
    await list.press("Enter");
    await page.locator("[role=treeitem][aria-selected=true]").waitFor();
    const last = await page.locator("[role=treeitem][aria-selected=true]").getAttribute("aria-posinset");
    await list.press("ArrowUp");
    await list.press("Enter");
    await page.locator(`[role=treeitem][aria-selected=true][aria-posinset="${Number(last) - 1}"]`).waitFor();
    await list.press("Home");
    await list.press("Enter");
    await page.locator('[role=treeitem][aria-selected=true][aria-posinset="1"]').waitFor();
    expect(await shown.violations()).toEqual([]);
  });

  test("says that a thread does not exist, or has no runs", async () => {
    const { page } = shown;
    await shown.go("/threads/00000000-0000-4000-8000-000000000000/history");
    await page
      .getByRole("alert")
      .getByText(/00000000-0000-4000-8000-000000000000/)
      .waitFor();
    const { thread_id: threadId } = await client.threads.create();
    await shown.go(`/threads/${threadId}/history`);
    await page.getByText("No run has started in it").waitFor();
    expect(await shown.violations()).toEqual([]);
  });

  test("fits a phone, in dark mode", async () => {
    const threadId = await aDraft();
    const context = await shown.browser.newContext({
      viewport: { width: 390, height: 844 },
      colorScheme: "dark",
    });
    const phone = await context.newPage();
    await phone.goto(`${shown.server.url}/console/#/threads/${threadId}/history`);
    await phone.getByRole("list", { name: "Differences" }).waitFor();
    expect(await phone.evaluate(WIDTHS)).toEqual([390, true]);
    expect(await violationsIn(phone)).toEqual([]);
    await phone.getByRole("button", { name: "Edit state…" }).click();
    await phone.getByRole("dialog").getByLabel("draft").waitFor();
    expect(await violationsIn(phone)).toEqual([]);
    await context.close();
  });

  test("has thrown no error, sent no request elsewhere, and broken no rule of its content policy", () => {
    expect(shown.faults).toEqual([]);
  });
});
