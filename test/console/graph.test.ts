import { describe, expect, test } from "vitest";
import { Client } from "@langchain/langgraph-sdk";
import { eventually } from "../helpers/conditions.ts";
import { openGate } from "./graphs/gate.ts";
import { violationsIn, reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { GRAPHS, onConsole } from "./on-console.ts";

const WIDTHS = `(() => {
  const main = document.querySelector("main");
  return [document.documentElement.scrollWidth, main.scrollWidth <= main.clientWidth];
})()`;

describe.skipIf(reasonForNoBrowser() !== undefined)("the page of graphs", { timeout: SLOW_MS }, () => {
  let shown: OpenConsole;
  let client: Client;
  onConsole({ graphConfigFile: GRAPHS }, (opened) => {
    shown = opened;
    client = new Client({ apiUrl: shown.server.url, apiKey: null });
  });

  const aThread = async (assistantId: string, input: Record<string, unknown>): Promise<string> => {
    const { thread_id: threadId } = await client.threads.create();
    await client.runs.wait(threadId, assistantId, { input, raiseError: false });
    return threadId;
  };
  const node = (id: string) => shown.page.locator(`button[data-node="${id}"]`);
  const drawing = () => shown.page.getByRole("region", { name: "Drawing of the graph" });

  test("draws the graph of a selected assistant with its subgraphs open, and closes them", async () => {
    const { page } = shown;
    await shown.go("/graph");
    await page.getByLabel("Assistant").selectOption({ label: "research" });
    await node("investigate:search").waitFor();
    expect(await drawing().getByRole("button").allTextContents()).toEqual([
      "plan",
      "investigate",
      "−",
      "search",
      "read",
      "report",
    ]);
    await page.getByRole("button", { name: "Subgraph investigate: close" }).press("Enter");
    await page.getByRole("button", { name: "Subgraph investigate: open" }).waitFor();
    expect(await drawing().getByRole("button").allTextContents()).toEqual([
      "plan",
      "investigate",
      "+",
      "report",
    ]);
    expect(await shown.violations()).toEqual([]);
    await page.getByRole("button", { name: "Subgraph investigate: open" }).press("Enter");
    await node("investigate:search").waitFor();
  });

  test("draws conditional edges dashed, with their labels", async () => {
    await shown.go("/graph/gated");
    await node("middle:wait").waitFor();
    const dashed = await shown.page.evaluate(
      `[...document.querySelectorAll("main svg path[marker-end]")].filter((path) => getComputedStyle(path).strokeDasharray !== "none").length`,
    );
    expect(dashed).toBe(2);
    expect(await drawing().locator("svg text").allTextContents()).toEqual(["once_more"]);
  });

  test("describes the graph in words", async () => {
    const { page } = shown;
    await page.getByText("Graph as a list").click();
    const items = page.getByRole("listitem").filter({ hasText: "leads to" });
    expect((await items.allTextContents()).join("\n")).toContain(
      "middle › wait leads to finish (if chosen), again (if chosen: once_more)",
    );
  });

  test("zooms the graph in and out, and to fit", async () => {
    const { page } = shown;
    const widthOf = async () => (await node("finish").boundingBox())?.width ?? 0;
    const width = await widthOf();
    await page.getByRole("button", { name: "Zoom in" }).click();
    await eventually("it is larger", async () => (await widthOf()) > width * 1.2);
    await page.getByRole("button", { name: "Zoom out" }).click();
    await page.getByRole("button", { name: "Zoom out" }).click();
    await eventually("it is smaller", async () => (await widthOf()) < width * 0.9);
    await page.getByRole("button", { name: "Fit" }).click();
    await eventually("it is as before", async () => Math.abs((await widthOf()) - width) < 1);
  });

  test("shows running nodes, also in subgraphs, and their results when they are done", async () => {
    const { page } = shown;
    const { thread_id: threadId } = await client.threads.create();
    await shown.go(`/graph/gated?thread=${threadId}`);
    await node("middle:wait").filter({ hasText: "has not run" }).waitFor();
    await client.runs.create(threadId, "gated", { input: { text: "hello" } });
    await node("middle:wait").filter({ hasText: "running" }).waitFor();
    await page.getByText("A run is in progress.").waitFor();
    await node("middle:prepare").filter({ hasText: "once" }).waitFor();
    expect(await shown.violations()).toEqual([]);
    await eventually("the gate is open", () => openGate() > 0);
    await page.getByText("No run is in progress.").waitFor();
    await node("finish")
      .filter({ hasText: /^finishonce, \d/ })
      .waitFor();
    await node("middle:wait")
      .filter({ hasText: /once, \d/ })
      .waitFor();

    // A second run on the same stream.
    await client.runs.create(threadId, "gated", { input: { text: "hello" } });
    await node("middle:wait").filter({ hasText: "running" }).waitFor();
    await eventually("the gate is open", () => openGate() > 0);
    await node("middle:wait")
      .filter({ hasText: /2 times, .* each/ })
      .waitFor();
    await node("finish")
      .filter({ hasText: /2 times, .* each/ })
      .waitFor();
  });

  test("closes its stream when the page is left, and opens none without a thread", async () => {
    const { page } = shown;
    const open = new Set<unknown>();
    page.on("request", (request) => {
      if (request.url().endsWith("/stream/events")) open.add(request);
    });
    page.on("requestfailed", (request) => open.delete(request));
    page.on("requestfinished", (request) => open.delete(request));
    const { thread_id: threadId } = await client.threads.create();
    await shown.go(`/graph/gated?thread=${threadId}`);
    await eventually("it is open", () => open.size === 1);
    await page.getByLabel("Thread", { exact: true }).selectOption("");
    await eventually("it is closed", () => open.size === 0);
    await shown.go(`/graph/gated?thread=${threadId}`);
    await eventually("it is open again", () => open.size === 1);
    await page.getByRole("link", { name: "Crons" }).click();
    await eventually("it is closed again", () => open.size === 0);
  });

  test("shows a run that began before the page was opened", async () => {
    const { thread_id: threadId } = await client.threads.create();
    await client.runs.create(threadId, "gated", { input: { text: "hello" } });
    await shown.go(`/graph/gated?thread=${threadId}`);
    await node("middle:wait").filter({ hasText: "running" }).waitFor();
    await eventually("the gate is open", () => openGate() > 0);
    await node("finish").filter({ hasText: "once" }).waitFor();
  });

  test("shows the input and output of each execution of a node, the newest first", async () => {
    const { page } = shown;
    const threadId = await aThread("counter", {});
    await client.runs.wait(threadId, "counter", { input: {} });
    await client.runs.wait(threadId, "counter", { input: {} });
    await shown.go(`/graph/counter?thread=${threadId}`);
    await node("increment").filter({ hasText: "3 times" }).press("Enter");
    await page.getByRole("heading", { name: "increment" }).waitFor();
    await page.getByText("Ran 3 times, newest first").waitFor();
    const newest = page.locator("details[data-outcome=done]").first();
    await newest.getByText("Input:").waitFor();
    await newest.locator("section", { hasText: "Input" }).getByText("count", { exact: true }).waitFor();
    expect(await newest.locator("section", { hasText: "Input" }).textContent()).toMatch(/count\s*2/);
    expect(await newest.locator("section", { hasText: "Output" }).textContent()).toMatch(/count\s*1/);
    const oldest = page.locator("details[data-outcome=done]").last();
    await oldest.locator("> summary").click();
    await oldest.locator("section", { hasText: "Input" }).getByText("count", { exact: true }).waitFor();
    expect(await oldest.locator("section", { hasText: "Input" }).textContent()).toMatch(/count\s*0/);
    expect(await shown.violations()).toEqual([]);
  });

  test("shows the input and output of nodes of subgraphs from the stored state alone", async () => {
    const { page, server } = shown;
    const threadId = await aThread("research", { messages: [{ role: "user", content: "looms" }] });
    // Simulates lost events of the run.
    await page.route("**/stream/events", (route) => route.abort());
    await shown.go(`/graph/research?thread=${threadId}`);
    await node("investigate:search").filter({ hasText: "3 times" }).click();
    const newest = page.locator("details[data-outcome=done]").first();
    await newest.locator("section", { hasText: "Input" }).getByText("question", { exact: true }).waitFor();
    expect(await newest.locator("section", { hasText: "Output" }).textContent()).toContain("Encyclopedia");
    await node("investigate").filter({ hasText: "investigate" }).click();
    await page.getByText("Ran 3 times, newest first").waitFor();
    await node("plan").click();
    const planned = page.locator("details[data-outcome=done] section", { hasText: "Output" });
    await planned.getByText("findings", { exact: true }).waitFor();
    // A value that bypasses a reducer looks like any other.
    expect(await planned.textContent()).not.toContain("__overwrite__");
    await page.unroute("**/stream/events");
    expect(server.url).not.toBe("");
  });

  test("counts the newest steps of a long thread, and the older ones on request", async () => {
    const { page } = shown;
    const threadId = await aThread("counter", {});
    for (let runs = 2; runs <= 20; runs += 1) await client.runs.wait(threadId, "counter", { input: {} });
    await shown.go(`/graph/counter?thread=${threadId}`);
    await node("increment").filter({ hasText: "17 times" }).waitFor();
    await page.getByRole("button", { name: "Include older steps" }).click();
    await node("increment").filter({ hasText: "20 times" }).waitFor();
    expect(await page.getByRole("button", { name: "Include older steps" }).count()).toBe(0);
  });

  test("shows the failed node and its error", async () => {
    const { page } = shown;
    const threadId = await aThread("failing", { reason: "out of yarn" });
    await shown.go(`/graph/failing?thread=${threadId}`);
    await node("fail").filter({ hasText: "failed" }).click();
    expect(await node("fail").getAttribute("title")).toBe("fail: out of yarn");
    await page.locator("details[data-outcome=failed]").getByText("out of yarn").first().waitFor();
    expect(await shown.violations()).toEqual([]);
  });

  test("shows the node that waits for an answer, and its question", async () => {
    const { page } = shown;
    const threadId = await aThread("approval", { messages: [{ role: "user", content: "looms" }] });
    await shown.go(`/graph/approval?thread=${threadId}`);
    await node("review").filter({ hasText: "waiting" }).click();
    await page.locator("details[data-outcome=waiting]").getByText("Interrupt").waitFor();
    expect(await page.getByRole("link", { name: "Time travel", exact: true }).getAttribute("href")).toBe(
      `#/threads/${threadId}/history`,
    );
  });

  test("finds the graph of a thread, and lists the assistant's threads", async () => {
    const { page } = shown;
    const threadId = await aThread("counter", {});
    await shown.go(`/graph?thread=${threadId}`);
    await node("increment").filter({ hasText: "once" }).waitFor();
    const thread = page.getByLabel("Thread", { exact: true });
    await thread.selectOption("");
    await node("increment").filter({ hasNotText: "once" }).waitFor();
    expect(page.url()).not.toContain("thread=");
    await thread.selectOption(threadId);
    await node("increment").filter({ hasText: "once" }).waitFor();
  });

  test("lists a graph that is too large to be drawn", async () => {
    const { page } = shown;
    await shown.go("/graph/large");
    await page.getByText("too many for a drawing").waitFor();
    await page.getByText("Graph as a list").click();
    await page.getByRole("button", { name: "node_399" }).waitFor();
  });

  test("says which assistant or thread does not exist", async () => {
    const { page } = shown;
    await shown.go("/graph/nobody");
    await page
      .getByRole("alert")
      .getByText(/nobody/)
      .waitFor();
    await shown.go("/graph/counter?thread=00000000-0000-4000-8000-000000000000");
    await page
      .getByRole("alert")
      .getByText(/00000000-0000-4000-8000-000000000000/)
      .waitFor();
    expect(await shown.violations()).toEqual([]);
  });

  test("fits a phone, in dark mode", async () => {
    const threadId = await aThread("research", { messages: [{ role: "user", content: "looms" }] });
    const context = await shown.browser.newContext({
      viewport: { width: 390, height: 844 },
      colorScheme: "dark",
    });
    const phone = await context.newPage();
    await phone.goto(`${shown.server.url}/console/#/graph/research?thread=${threadId}`);
    await phone.locator('button[data-node="report"]').filter({ hasText: "once" }).click();
    await phone.getByText("Ran once").waitFor();
    expect(await phone.evaluate(WIDTHS)).toEqual([390, true]);
    expect(await violationsIn(phone)).toEqual([]);
    await context.close();
  });

  test("has thrown no error, sent no request elsewhere, and broken no rule of its content policy", () => {
    expect(shown.faults).toEqual([]);
  });
});
