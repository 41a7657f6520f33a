import type { Page } from "playwright-core";
import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { apiOf, saying, type Api } from "../helpers/api.ts";
import { reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { GRAPHS, onConsole } from "./on-console.ts";
import { playgroundOf } from "./playground-person.ts";

/** Keeps each line that the page ever shows, however shortly, in `window.lines`. */
const KEEP_LINES = `
  window.lines = new Set();
  new MutationObserver(() => {
    for (const line of (document.body?.innerText ?? "").split("\\n")) window.lines.add(line.trim());
  }).observe(document, { childList: true, subtree: true, characterData: true });
`;
const forgetLines = (page: Page): Promise<void> => page.evaluate("lines.clear()");
const linesOf = (page: Page): Promise<string[]> => page.evaluate("[...lines]");

/** So that the events of one run arrive in several parts. */
const BYTES_PER_SECOND = 30_000;

describe.skipIf(reasonForNoBrowser() !== undefined)(
  "a page never says what it does not know",
  { timeout: SLOW_MS },
  () => {
    let shown: OpenConsole;
    let api: Api;
    onConsole(
      { graphConfigFile: GRAPHS, context: { viewport: { width: 1400, height: 900 } } },
      async (opened) => {
        shown = opened;
        api = apiOf(shown.server);
        await shown.page.addInitScript(KEEP_LINES);
        await shown.page.reload();
      },
    );

    const { messages, say, begin } = playgroundOf(() => shown);
    /** With a run whose stream is repeated to new readers. */
    const anIdleThread = async (): Promise<string> => {
      const threadId = await api.aThread();
      await api.post(`/threads/${threadId}/commands`, {
        id: 1,
        method: "run.start",
        params: { assistant_id: "agent", input: saying("What is the weather in Paris?") },
      });
      await api.untilQuiet(threadId);
      return threadId;
    };
    /** Delays the answers to requests of these addresses. */
    const delay = (address: string, milliseconds: number) =>
      shown.page.route(address, async (route) => {
        await pause(milliseconds);
        await route.continue();
      });

    test("that a run of an idle thread goes on, although the stream repeats it", async () => {
      const { page } = shown;
      const [before, threadId] = [await anIdleThread(), await anIdleThread()];
      await shown.go(`/graph/agent?thread=${before}`);
      await page.getByText("No run is in progress.").waitFor();
      await page.getByRole("button", { name: /^agent/ }).click();
      const network = await page.context().newCDPSession(page);
      const limit = (downloadThroughput: number) =>
        network.send("Network.emulateNetworkConditions", {
          ...{ offline: false, latency: 0, uploadThroughput: -1, downloadThroughput },
        });
      await limit(BYTES_PER_SECOND);
      await forgetLines(page);
      await shown.go(`/graph/agent?thread=${threadId}`);
      // Only the stream has the input of the newest task.
      await page.getByText("Input: values sent to the node").first().waitFor();
      await page.getByText("No run is in progress.").waitFor();
      await limit(-1);
      const lines = await linesOf(page);
      expect(lines.filter((line) => /^(A run is in progress|running$)/.test(line))).toEqual([]);
      expect(lines).toContain("Loading the steps…");
    });

    test("that a thread has no messages, no name or no assistant, or runs, while it is read", async () => {
      const { page } = shown;
      const threadId = await anIdleThread();
      await shown.go("/");
      await page.getByLabel("Message", { exact: true }).waitFor();
      await forgetLines(page);
      await delay("**/threads/search", 200);
      await shown.go(`/threads/${threadId}`);
      await messages()
        .getByText(/^It is .* in Paris/)
        .waitFor();
      await page.getByRole("button", { name: "Rename the thread What is the weather in Paris?" }).waitFor();
      await page.unrouteAll();
      const wrong = /no messages yet|^Unnamed$|^Choose an assistant$|is running|^Stop$/;
      expect((await linesOf(page)).filter((line) => wrong.test(line))).toEqual([]);
      await page.reload();
      await messages()
        .getByText(/^It is .* in Paris/)
        .waitFor();
      expect((await linesOf(page)).filter((line) => wrong.test(line))).toEqual([]);
    });

    test("that a graph has stopped before a node, when its run has just ended", async () => {
      const { page } = shown;
      await begin("agent");
      await say("one");
      await messages()
        .getByText(/^You said: "one"/)
        .waitFor();
      await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
      await forgetLines(page);
      await delay("**/history", 1_000);
      let reads = 0;
      page.on("response", (answer) => {
        if (answer.url().endsWith("/history")) reads += 1;
      });
      const threadId = /[0-9a-f-]{36}/.exec(page.url())?.[0] ?? "";
      await say("What is the weather in Paris?");
      await messages()
        .getByText(/^It is .* in Paris/)
        .waitFor();
      await api.untilQuiet(threadId);
      await messages().last().getByRole("button", { name: "Regenerate" }).waitFor();
      // At the start of the run, and at its end.
      await expect.poll(() => reads, { timeout: 30_000 }).toBeGreaterThan(1);
      expect((await linesOf(page)).filter((line) => line.startsWith("The graph has stopped"))).toEqual([]);
      await page.unrouteAll({ behavior: "wait" });
    });

    test("that a run has an assistant of its own, while the assistants are read", async () => {
      const { page } = shown;
      const [run] = await api.runs(await anIdleThread());
      await delay("**/assistants/search", 500);
      const read = page.waitForResponse((answer) => answer.url().endsWith("/assistants/search"));
      await page.reload();
      await shown.go(`/runs/${run?.run_id ?? ""}`);
      await page.getByRole("link", { name: "Time travel" }).waitFor();
      await read;
      await page.unrouteAll({ behavior: "wait" });
      expect((await linesOf(page)).filter((line) => line.startsWith("Assistant"))).not.toContainEqual(
        expect.stringMatching(/^Assistant …/),
      );
    });

    test("and throws no error", () => {
      expect(shown.faults).toEqual([]);
    });
  },
);
