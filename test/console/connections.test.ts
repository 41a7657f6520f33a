import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { eventually } from "../helpers/conditions.ts";
import { reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { startDeafProxy } from "./deaf-proxy.ts";
import { openGate } from "./graphs/gate.ts";
import { GRAPHS, onConsole } from "./on-console.ts";

/** Over HTTP/1.1 a browser opens six connections to a server for all tabs, and each tab would keep two. */
const TABS = 4;

describe.skipIf(reasonForNoBrowser() !== undefined)(
  "connections of the console",
  { timeout: SLOW_MS },
  () => {
    let shown: OpenConsole;
    onConsole({ graphConfigFile: GRAPHS }, (opened) => (shown = opened));

    const openStreams = async (): Promise<number> => {
      const answer = await fetch(`${shown.server.url}/metrics?format=json`);
      const { event_streaming: figures } = (await answer.json()) as { event_streaming: { streams: number } };
      return figures.streams;
    };
    const streamsAre = (count: number) =>
      eventually(`${count} streams are open`, async () => (await openStreams()) === count || undefined);
    const begin = async (page: Page, assistant: string, text: string): Promise<void> => {
      await page.goto(`${shown.server.url}/console/#/?assistant=${assistant}`);
      await page.getByRole("heading", { level: 2, name: assistant }).waitFor();
      await page.getByLabel("Message", { exact: true }).fill(text);
      await page.keyboard.press("Enter");
    };
    /** Headless Chromium treats all its tabs as visible. */
    const look = (page: Page, state: "visible" | "hidden"): Promise<void> =>
      page.evaluate(`
      Object.defineProperty(document, "visibilityState", { configurable: true, value: "${state}" });
      document.dispatchEvent(new Event("visibilitychange"));
    `);

    test("are released by a tab whose run has ended, so any number of tabs can be open", async () => {
      const context = shown.page.context();
      const tabs = [shown.page];
      while (tabs.length < TABS) tabs.push(await context.newPage());
      for (const [place, tab] of tabs.entries()) {
        await begin(tab, "agent", `question ${place}`);
        await tab.getByRole("log", { name: "Messages" }).getByText(`You said: "question ${place}"`).waitFor();
        await streamsAre(0);
      }
      await shown.page.getByLabel("Message", { exact: true }).fill("once more");
      await shown.page.keyboard.press("Enter");
      await shown.page.getByRole("log", { name: "Messages" }).getByText(`You said: "once more"`).waitFor();
      for (const tab of tabs.slice(1)) await tab.close();
    });

    test("are released by a hidden tab, which later shows all missed events", async () => {
      const { page } = shown;
      const messages = page.getByRole("log", { name: "Messages" });
      await begin(page, "held", "hello");
      await messages.getByText("the first answer").waitFor();
      expect(await openStreams()).toBeGreaterThan(0);
      await look(page, "hidden");
      await streamsAre(0);
      const threadId = /threads\/([\w-]+)/.exec(page.url())?.[1] ?? "";
      await eventually("the graph waits at the gate", () => openGate() === 1 || undefined);
      await eventually("the run has ended", async () => {
        const answer = await fetch(`${shown.server.url}/threads/${threadId}`);
        return ((await answer.json()) as { status: string }).status === "idle" || undefined;
      });
      expect(await messages.getByText("the second answer").count()).toBe(0);
      await look(page, "visible");
      await messages.getByText("the second answer").waitFor();
      await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
      expect(await messages.getByRole("article").count()).toBe(3);
    });

    test("are opened again for a running run when its tab becomes visible", async () => {
      const { page } = shown;
      const messages = page.getByRole("log", { name: "Messages" });
      await begin(page, "held", "hello");
      await messages.getByText("the first answer").waitFor();
      await look(page, "hidden");
      await streamsAre(0);
      await look(page, "visible");
      await eventually("a stream is open", async () => (await openStreams()) > 0 || undefined);
      await eventually("the graph waits at the gate", () => openGate() === 1 || undefined);
      await messages.getByText("the second answer").waitFor();
      expect(await messages.getByRole("article").count()).toBe(3);
      await streamsAre(0);
    });

    /**
     * Opens the console through a proxy that hides lost connections, begins a run that waits, and ends it while the console is
     * disconnected.
     */
    const endUnheard = async (listen: (page: Page) => Promise<void>): Promise<void> => {
      const proxy = await startDeafProxy(shown.server.url);
      const page = await shown.page.context().newPage();
      try {
        await page.goto(`${proxy.url}/console/#/?assistant=held`);
        await page.getByRole("heading", { level: 2, name: "held" }).waitFor();
        await page.getByLabel("Message", { exact: true }).fill("hello");
        await page.keyboard.press("Enter");
        const messages = page.getByRole("log", { name: "Messages" });
        await messages.getByText("the first answer").waitFor();
        await listen(page);
        expect(proxy.loseStreams()).toBeGreaterThan(0);
        await eventually("the graph waits at the gate", () => openGate() === 1 || undefined);
        await messages.getByText("the second answer").waitFor();
        await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
        expect(await messages.getByRole("article").count()).toBe(3);
      } finally {
        await page.close();
        await proxy.close();
      }
    };

    test("that a proxy keeps open without the server do not hide the run's end", () =>
      endUnheard(async () => undefined));

    test("that a proxy keeps open without the server do not hide the end of a joined run", () =>
      endUnheard(async (page) => {
        await streamsAre(2);
        await page.reload();
        await page.getByRole("button", { name: "Stop" }).waitFor();
        await page.getByRole("log", { name: "Messages" }).getByText("the first answer").waitFor();
        await streamsAre(2);
      }));

    test("has thrown no error, sent no request elsewhere, and broken no rule of its content policy", () => {
      expect(shown.faults).toEqual([]);
    });
  },
);
