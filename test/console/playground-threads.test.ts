import { randomUUID } from "node:crypto";
import { Client } from "@langchain/langgraph-sdk";
import { describe, expect, test } from "vitest";
import { reasonForNoBrowser, SLOW_MS, violationsIn, watchPage, type OpenConsole } from "./browser.ts";
import { playgroundOf } from "./playground-person.ts";
import { GRAPHS, onConsole } from "./on-console.ts";

describe.skipIf(reasonForNoBrowser() !== undefined)("threads in the playground", { timeout: SLOW_MS }, () => {
  let shown: OpenConsole;
  onConsole(
    {
      graphConfigFile: GRAPHS,
      context: {
        viewport: { width: 1400, height: 900 },
        permissions: ["clipboard-read", "clipboard-write"],
      },
    },
    (opened) => (shown = opened),
  );

  const { messagesOf, messages, say, begin } = playgroundOf(() => shown);
  const answerTo = (text: string, page = shown.page) =>
    messagesOf(page).getByText(new RegExp(`^You said: "${text}"`));
  const branchOf = (place: number) => messages().nth(place).getByRole("group", { name: "Branches" });

  test("are edited into branches, each of which is shown again and continues", async () => {
    await begin("agent");
    for (const text of ["one", "two"]) {
      await say(text);
      await answerTo(text).waitFor();
    }
    await messages().first().getByRole("button", { name: "Edit" }).click();
    await shown.page.getByLabel("Edited message").fill("other");
    await shown.page.getByRole("button", { name: "Send as a new branch" }).click();
    await answerTo("other").waitFor();
    await branchOf(0).getByText("2/2").waitFor();
    expect(await messages().count()).toBe(2);
    await branchOf(0).getByRole("button", { name: "Previous branch" }).click();
    await answerTo("two").waitFor();
    await branchOf(0).getByText("1/2").waitFor();
    expect(await messages().count()).toBe(4);
    expect(await shown.violations()).toEqual([]);
    await say("three");
    await answerTo("three").waitFor();
    expect(await messages().count()).toBe(6);
    await shown.page.reload();
    await answerTo("three").waitFor();
    await branchOf(0).getByText("1/2").waitFor();
  });

  test("regenerate an answer any number of times", async () => {
    await begin("agent");
    await say("one");
    await answerTo("one").waitFor();
    for (const branch of ["2/2", "3/3"]) {
      await messages().nth(1).getByRole("button", { name: "Regenerate" }).click();
      await branchOf(1).getByText(branch).waitFor();
      await messages().nth(1).getByRole("button", { name: "Regenerate" }).waitFor();
    }
    await branchOf(1).getByRole("button", { name: "Previous branch" }).click();
    await branchOf(1).getByText("2/3").waitFor();
    await shown.page.getByRole("button", { name: "Show the newest" }).click();
    await branchOf(1).getByText("3/3").waitFor();
    expect(await messages().count()).toBe(2);
  });

  test("show in every tab the changes of any tab, also of other clients' runs", async () => {
    await begin("agent");
    await say("first");
    await answerTo("first").waitFor();
    const other = await shown.browser.contexts()[0]!.newPage();
    const faults = watchPage(other, shown.server.url);
    await other.goto(shown.page.url());
    await answerTo("first", other).waitFor();
    await say("second");
    await answerTo("second", other).waitFor();
    await say("third", other);
    await answerTo("third").waitFor();
    for (const page of [other, shown.page])
      await expect.poll(() => messagesOf(page).last().getAttribute("aria-setsize")).toBe("6");
    await other.close();
    expect(faults).toEqual([]);
  });

  test("are named, searched, paged, and deleted after a confirmation", async () => {
    const { page, server } = shown;
    const list = page.getByRole("complementary", { name: "Threads" });
    await begin("agent");
    await say("A thread");
    await answerTo("A thread").waitFor();
    const id = /[0-9a-f-]{36}/.exec(page.url())?.[0] ?? "";
    await page.getByRole("button", { name: "More of this thread" }).click();
    await page.getByRole("menuitem", { name: "Copy id" }).click();
    await page.getByText("Copied.").waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(id);
    await page.getByRole("button", { name: "Rename the thread A thread" }).click();
    await page.getByLabel("Name of the thread").fill("My thread");
    await page.keyboard.press("Enter");
    await list.getByText("My thread").waitFor();
    const ids: string[] = [];
    for (let count = 0; count < 35; count += 1) {
      const { body } = await server.client.post("/threads").send({ metadata: { customer: count } });
      ids.push((body as { thread_id: string }).thread_id);
    }
    const search = list.getByLabel("Search threads");
    await search.fill("customer=7");
    await list.getByRole("link", { name: ids[7] ?? "" }).waitFor();
    await expect.poll(() => list.getByRole("listitem").count()).toBe(1);
    await search.fill(ids[3] ?? "");
    await list.getByRole("link", { name: ids[3] ?? "" }).waitFor();
    await search.fill("");
    const size = () => list.getByRole("listitem").first().getAttribute("aria-setsize");
    await expect.poll(async () => Number(await size())).toBeGreaterThan(35);
    await search.fill("status=interrupted");
    await list.getByText("No thread found.").waitFor();
    // It is not among the listed threads, because words are searched in all.
    await search.fill("my thread");
    await list.getByRole("link", { name: "My thread" }).waitFor();
    await list
      .getByText("Searched names, first messages and metadata of all threads.")
      .waitFor({ timeout: 30_000 });
    expect(await list.getByRole("listitem").count()).toBe(1);
    expect(await shown.violations()).toEqual([]);
    await search.fill("");
    await list.getByRole("link", { name: ids[34] ?? "" }).focus();
    await page.keyboard.press("End");
    await list.getByRole("link", { name: "My thread" }).waitFor();
    await search.fill("my thread");
    await expect.poll(() => list.getByRole("listitem").count()).toBe(1);
    await list.getByRole("listitem").hover();
    await list.getByRole("button", { name: "Delete thread My thread" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Go back" }).click();
    await list.getByRole("button", { name: "Delete thread My thread" }).click();
    expect(await shown.violations()).toEqual([]);
    await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
    // It was the open thread.
    await page.waitForURL(/#\/$/);
    await list.getByText("No thread found.").waitFor();
    await search.fill("");
    await list.getByRole("listitem").first().waitFor();
    expect(await list.getByText("My thread").count()).toBe(0);
  });

  test("are marked by click and Shift, and deleted together", async () => {
    const { page, server } = shown;
    const list = page.getByRole("complementary", { name: "Threads" });
    for (let count = 0; count < 6; count += 1)
      await server.client.post("/threads").send({ metadata: { title: `Together ${count}` } });
    await shown.go("/");
    await list.getByRole("link", { name: "Together 5" }).hover();
    await list.getByRole("checkbox", { name: "Select thread Together 5" }).check();
    await list.getByRole("checkbox", { name: "Select thread Together 2" }).click({ modifiers: ["Shift"] });
    await list.getByText("4 selected").waitFor();
    expect(await shown.violations()).toEqual([]);
    await list.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
    await expect.poll(() => list.getByRole("link", { name: /^Together/ }).count()).toBe(2);
    await list.getByRole("link", { name: "Together 1" }).waitFor();
  });

  test("are opened one after the other by J and K, and by arrow keys and Enter", async () => {
    const { page, server } = shown;
    const list = page.getByRole("complementary", { name: "Threads" });
    const ids: string[] = [];
    for (let count = 0; count < 3; count += 1) {
      const { body } = await server.client.post("/threads").send({ metadata: { title: `Key ${count}` } });
      ids.push((body as { thread_id: string }).thread_id);
    }
    await shown.go(`/threads/${ids[2] ?? ""}`);
    const current = (name: string) => list.locator('[data-current="true"]').getByRole("link", { name });
    await current("Key 2").waitFor();
    await list.getByRole("link", { name: "Key 0" }).waitFor();
    await page.getByRole("main").focus();
    await page.keyboard.press("j");
    await current("Key 1").waitFor();
    await page.getByRole("main").focus();
    await page.keyboard.press("k");
    await current("Key 2").waitFor();
    await list.getByRole("link", { name: "Key 2" }).focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForURL(new RegExp(`${ids[0] ?? ""}$`));
  });

  test("that need a person, run or failed are found by a click", async () => {
    const { page, server } = shown;
    const client = new Client({ apiUrl: server.url, apiKey: null });
    const { thread_id: threadId } = await client.threads.create({ metadata: { title: "Broken" } });
    await client.runs.wait(threadId, "failing", { input: {}, raiseError: false });
    await shown.go("/");
    const list = page.getByRole("complementary", { name: "Threads" });
    await list.getByRole("button", { name: "Failed" }).click();
    await list.getByRole("link", { name: /failed:.*Broken/ }).waitFor();
    expect(await list.getByRole("listitem").count()).toBe(1);
    await list.getByRole("button", { name: "Failed" }).click();
  });

  test("show the messages of an API run that began and ended between two polls", async () => {
    await begin("agent");
    await say("mine");
    await answerTo("mine").waitFor();
    const threadId = /[0-9a-f-]{36}$/.exec(shown.page.url())?.[0] ?? "";
    const client = new Client({ apiUrl: shown.server.url, apiKey: null });
    for (const text of ["theirs", "theirs again"]) {
      await client.runs.wait(threadId, "agent", { input: { messages: [{ role: "user", content: text }] } });
      await answerTo(text).waitFor();
    }
    await say("mine again");
    await answerTo("mine again").waitFor();
  });

  test("release states after they were shown: a state may have megabytes", async () => {
    const { page, server } = shown;
    const client = new Client({ apiUrl: server.url, apiKey: null });
    const { thread_id: threadId } = await client.threads.create();
    const store = (count: number) =>
      client.threads.updateState(threadId, {
        values: { messages: [{ role: "human", content: `number ${count}` }] },
        asNode: "agent",
      });
    await client.runs.wait(threadId, "agent", { input: { messages: [{ role: "user", content: "first" }] } });
    await shown.go(`/threads/${threadId}`);
    const state = page.getByRole("complementary", { name: "State, graph and timeline" });
    for (let count = 3; count <= 10; count += 1) {
      await store(count);
      await state.getByText(`${count} items`).waitFor();
    }
    const debuggerOfPage = await page.context().newCDPSession(page);
    const { result: prototype } = await debuggerOfPage.send("Runtime.evaluate", {
      expression: "Object.prototype",
    });
    const { objects } = await debuggerOfPage.send("Runtime.queryObjects", {
      prototypeObjectId: prototype.objectId ?? "",
    });
    const { result } = await debuggerOfPage.send("Runtime.callFunctionOn", {
      objectId: objects.objectId ?? "",
      returnByValue: true,
      functionDeclaration: `function () {
        return this.filter((one) => Object.hasOwn(one, "created_at") && Object.hasOwn(one, "values")
          && Array.isArray(one.values?.messages)).length;
      }`,
    });
    // React keeps its previous tree.
    expect(result.value).toBeLessThan(5);
    expect(result.value).toBeGreaterThan(0);
  });

  test("that do not exist leave a page with a title", async () => {
    const { page } = shown;
    await shown.go(`/threads/${randomUUID()}`);
    await page.getByText("This thread does not exist").waitFor();
    expect(await page.getByRole("heading", { level: 1 }).textContent()).toBe("Thread");
    expect(await shown.violations()).toEqual([]);
  });

  test("are usable on a phone and in dark mode, with threads and state in dialogs", async () => {
    const { browser, server } = shown;
    const context = await browser.newContext({ viewport: { width: 390, height: 844 }, colorScheme: "dark" });
    const page = await context.newPage();
    const faults = watchPage(page, server.url);
    await page.goto(`${server.url}/console/#/?assistant=agent`);
    await say("What is 2+3?", page);
    await messagesOf(page).getByText("2+3 = 5", { exact: true }).waitFor();
    expect(await violationsIn(page)).toEqual([]);
    await page.getByRole("button", { name: "State, graph and timeline" }).click();
    await page.getByRole("dialog").getByText("4 items").waitFor();
    expect(await violationsIn(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Threads" }).click();
    await page.getByRole("dialog").getByRole("link", { name: "What is 2+3?" }).waitFor();
    expect(await violationsIn(page)).toEqual([]);
    await page.getByRole("dialog").getByRole("link", { name: "New thread" }).click();
    await page.waitForURL(/#\/$/);
    expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    await context.close();
    expect(faults).toEqual([]);
  });

  test("can be started with any graph, however many assistants exist", async () => {
    const client = new Client({ apiUrl: shown.server.url, apiKey: null });
    const graphs = (await client.assistants.search({ metadata: { created_by: "system" }, limit: 100 }))
      .length;
    for (let made = 0; made < 520; made += 20)
      await Promise.all(
        Array.from({ length: 20 }, (_, place) =>
          client.assistants.create({ graphId: "agent", name: `assistant ${made + place}` }),
        ),
      );
    await shown.go("/");
    await shown.page.reload();
    const choice = shown.page.getByLabel("Assistant", { exact: true });
    await choice.locator("optgroup[label=Assistants] option").first().waitFor({ state: "attached" });
    expect(await choice.locator("optgroup[label=Graphs] option").count()).toBe(graphs);
  });

  test("have thrown no error, sent no request elsewhere, and broken no rule of the content policy", () => {
    expect(shown.faults).toEqual([]);
  });
});
