import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../helpers/conditions.ts";
import { openConsole, reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { startDeafProxy } from "./deaf-proxy.ts";
import { openGate } from "./graphs/gate.ts";

const GRAPHS = fileURLToPath(new URL("./graphs/langgraph.json", import.meta.url));
/** Over HTTP/1.1 a browser opens six connections to a server for all of them, and each would keep two. */
const TABS = 4;

describe.skipIf(reasonForNoBrowser() !== undefined)(
  "connections of the console",
  { timeout: SLOW_MS },
  () => {
    let shown: OpenConsole;
    beforeAll(async () => {
      shown = await openConsole({ graphConfigFile: GRAPHS });
    }, SLOW_MS);
    afterAll(() => shown?.close());

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
    /** Chromium without a screen shows all its tabs. */
    const look = (page: Page, state: "visible" | "hidden"): Promise<void> =>
      page.evaluate(`
      Object.defineProperty(document, "visibilityState", { configurable: true, value: "${state}" });
      document.dispatchEvent(new Event("visibilitychange"));
    `);

    test("are left to others by a tab whose run has ended, so that any number of tabs can be open", async () => {
      const context = shown.page.context();
      const tabs = [shown.page];
      while (tabs.length < TABS) tabs.push(await context.newPage());
      for (const [place, tab] of tabs.entries()) {
        await begin(tab, "agent", `question ${place}`);
        await tab.getByRole("log", { name: "Messages" }).getByText(`You said: "question ${place}"`).waitFor();
        await streamsAre(0);
      }
      // The first one goes on where it was.
      await shown.page.getByLabel("Message", { exact: true }).fill("once more");
      await shown.page.keyboard.press("Enter");
      await shown.page.getByRole("log", { name: "Messages" }).getByText(`You said: "once more"`).waitFor();
      for (const tab of tabs.slice(1)) await tab.close();
    });

    test("are left to others by a tab that nobody sees, which shows all that it has missed", async () => {
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

    test("are taken again for a run that goes on as somebody looks again", async () => {
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

    /** Opens the console through a proxy that notices nothing, begins a run that waits, and lets it end unheard. */
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

    test("that a proxy keeps open when the server behind it is gone do not hide how the run has ended", () =>
      endUnheard(async () => undefined));

    test("nor how a run has ended that was joined", () =>
      endUnheard(async (page) => {
        await streamsAre(2);
        await page.reload();
        await page.getByRole("button", { name: "Stop" }).waitFor();
        await page.getByRole("log", { name: "Messages" }).getByText("the first answer").waitFor();
        await streamsAre(2);
      }));

    test("has thrown nothing, asked nobody else, and broken no rule of its content policy", () => {
      expect(shown.faults).toEqual([]);
    });
  },
);
