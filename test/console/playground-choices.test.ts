import { randomUUID } from "node:crypto";
import type { Route } from "playwright-core";
import { describe, expect, test } from "vitest";
import { apiOf, saying, type Api } from "../helpers/api.ts";
import { reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { GRAPHS, onConsole } from "./on-console.ts";
import { playgroundOf } from "./playground-person.ts";

/** Another thread is reached in each of these ways. */
const WAYS = ["a click", "a link", "a key", "back"] as const;

describe.skipIf(reasonForNoBrowser() !== undefined)(
  "what is chosen for a thread in the playground",
  { timeout: SLOW_MS },
  () => {
    let shown: OpenConsole;
    let api: Api;
    onConsole({ graphConfigFile: GRAPHS, context: { viewport: { width: 1400, height: 900 } } }, (opened) => {
      shown = opened;
      api = apiOf(shown.server);
    });

    const { messages, say } = playgroundOf(() => shown);
    const list = () => shown.page.getByRole("complementary", { name: "Threads" });
    const choice = () => shown.page.getByLabel("Assistant", { exact: true });
    const box = () => shown.page.getByLabel("Message", { exact: true });
    const chosen = () => choice().locator("option:checked").textContent();
    const isOpen = (title: string): Promise<void> =>
      shown.page.getByRole("button", { name: `Rename the thread ${title}` }).waitFor();
    const aThread = async (title: string, assistant = "agent"): Promise<string> => {
      const threadId = await api.aThread({ metadata: { title } });
      await api.aFinishedRun(threadId, { assistant_id: assistant, input: saying("hello") });
      return threadId;
    };
    const open = async (threadId: string, title: string): Promise<void> => {
      await shown.go(`/threads/${threadId}`);
      await isOpen(title);
      await box().waitFor();
    };
    const openOptions = async () => {
      await shown.page.getByRole("button", { name: /^Run options/ }).click();
      return shown.page.getByRole("dialog");
    };
    const stopBeforeTools = async (): Promise<void> => {
      const form = await openOptions();
      await form.getByLabel("Stop before tools").check();
      await form.getByRole("button", { name: "Use for the next runs" }).click();
      await withOptions().waitFor();
    };
    const withOptions = () => shown.page.getByRole("button", { name: "Run options: stop before tools" });
    const withoutOptions = () => shown.page.getByRole("button", { name: "Run options", exact: true });

    test.each(WAYS)("is left behind when %s leads to another thread, also its assistant", async (way) => {
      const { page } = shown;
      const other = await aThread(`Other by ${way}`);
      const one = await aThread(`One by ${way}`);
      await open(other, `Other by ${way}`);
      await open(one, `One by ${way}`);
      await choice().selectOption("typing");
      await box().fill("for one");
      await page.getByLabel("Files", { exact: true }).setInputFiles({
        ...{ name: "one.txt", mimeType: "text/plain", buffer: Buffer.from("one") },
      });
      await page.getByRole("list", { name: "Files to send" }).waitFor();
      await page.getByRole("button", { name: `Rename the thread One by ${way}` }).click();
      await page.getByLabel("Name of the thread").waitFor();
      if (way === "a click")
        await list()
          .getByRole("link", { name: `Other by ${way}` })
          .click();
      if (way === "a link") await shown.go(`/threads/${other}`);
      if (way === "back") await page.goBack();
      if (way === "a key") {
        await list()
          .getByRole("link", { name: `Other by ${way}` })
          .waitFor();
        await page.getByRole("main").focus();
        await page.keyboard.press("j");
      }
      await isOpen(`Other by ${way}`);
      expect(await chosen()).toBe("agent");
      await withoutOptions().waitFor();
      expect(await box().inputValue()).toBe("");
      expect(await page.getByRole("list", { name: "Files to send" }).count()).toBe(0);
      await say("to the other");
      await messages()
        .getByText(/^You said: "to the other"/)
        .waitFor();
      const [before, after, ...more] = await api.runs(other);
      expect([after?.assistant_id, more.length]).toEqual([before?.assistant_id, 0]);
      // What was written is still there, and the thread has its own assistant again.
      await list()
        .getByRole("link", { name: `One by ${way}` })
        .click();
      await isOpen(`One by ${way}`);
      expect([await chosen(), await box().inputValue()]).toEqual(["agent", "for one"]);
    });

    test("is in its address, so a reload and the way back lead to the same assistant", async () => {
      const { page } = shown;
      const one = await aThread("With another assistant");
      const other = await aThread("With its own");
      await open(one, "With another assistant");
      await choice().selectOption("typing");
      await page.waitForURL(/\?assistant=/);
      await page.reload();
      await expect.poll(chosen).toBe("typing");
      await open(other, "With its own");
      expect(await chosen()).toBe("agent");
      await page.goBack();
      await isOpen("With another assistant");
      await expect.poll(chosen).toBe("typing");
      await list().getByRole("link", { name: "New thread" }).click();
      await page.getByRole("heading", { level: 2, name: "agent" }).waitFor();
      expect(await chosen()).toBe("agent");
    });

    test("as options of runs stays with it, and a new thread takes them along when it begins", async () => {
      const { page } = shown;
      const other = await aThread("Without options");
      await shown.go("/?assistant=agent");
      await stopBeforeTools();
      await open(other, "Without options");
      await withoutOptions().waitFor();
      await shown.go("/?assistant=agent");
      await withOptions().waitFor();
      await say("What is the weather in Paris?");
      await page.getByText("The graph has stopped before tools.").waitFor();
      await withOptions().waitFor();
      await list().getByRole("link", { name: "New thread" }).click();
      await page.getByRole("heading", { level: 2, name: "agent" }).waitFor();
      await withoutOptions().waitFor();
      await page.goBack();
      await withOptions().waitFor();
    });

    test("as the text of a new thread stays when another assistant is picked, and is gone once sent", async () => {
      const { page } = shown;
      await shown.go("/?assistant=agent");
      await box().fill("who answers?");
      await choice().selectOption("waiting");
      await page.getByRole("heading", { level: 2, name: "waiting" }).waitFor();
      expect(await box().inputValue()).toBe("who answers?");
      await choice().selectOption("agent");
      await page.getByRole("heading", { level: 2, name: "agent" }).waitFor();
      await box().press("Enter");
      await messages()
        .getByText(/^You said: "who answers\?"/)
        .waitFor();
      await list().getByRole("link", { name: "New thread" }).click();
      await page.getByRole("heading", { level: 2, name: "agent" }).waitFor();
      expect(await box().inputValue()).toBe("");
    });

    test("is not replaced by a thread that is deleted meanwhile: the open one stays open", async () => {
      const { page } = shown;
      const deleted = await aThread("To be deleted");
      const kept = await aThread("To be kept");
      await open(deleted, "To be deleted");
      const held: Route[] = [];
      await page.route(`**/threads/${deleted}`, (route) =>
        route.request().method() === "DELETE" ? void held.push(route) : route.continue(),
      );
      for (const remove of [
        async () => {
          await page.getByRole("button", { name: "More of this thread" }).click();
          await page.getByRole("menuitem", { name: "Delete" }).click();
        },
        () => list().getByRole("button", { name: "Delete thread To be deleted" }).click(),
      ]) {
        await open(deleted, "To be deleted");
        await remove();
        await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
        await expect.poll(() => held.length).toBeGreaterThan(0);
        await list().getByRole("link", { name: "To be kept" }).click();
        await isOpen("To be kept");
        const read = page.waitForResponse((answer) => answer.url().endsWith("/threads/search"));
        await held.pop()?.fulfill({ status: 204 });
        await read;
        expect(page.url()).toContain(kept);
      }
      await page.unrouteAll();
    });

    test("must be an assistant that is known, before anything can be sent", async () => {
      const { page } = shown;
      await shown.go("/?assistant=nobody");
      await page.getByRole("alert").waitFor();
      expect([await chosen(), await box().count()]).toEqual(["Choose an assistant", 0]);
      const foreign = await api.aThread({
        metadata: { title: "Of a graph elsewhere", graph_id: "elsewhere", assistant_id: randomUUID() },
      });
      await shown.go(`/threads/${foreign}`);
      await isOpen("Of a graph elsewhere");
      await page.getByText("The graph of this thread is not on this server.").waitFor();
      expect([await chosen(), await box().count()]).toEqual(["Choose an assistant", 0]);
      expect(await shown.violations()).toEqual([]);
      const orphan = await api.aThread({
        metadata: { title: "Of a deleted assistant", graph_id: "typing", assistant_id: randomUUID() },
      });
      await open(orphan, "Of a deleted assistant");
      expect(await chosen()).toBe("typing");
    });

    test("as an answer to a question is not offered for the same question of a copy", async () => {
      const { page } = shown;
      const asked = await api.aThread({ metadata: { title: "Asked" } });
      await api.aFinishedRun(asked, { assistant_id: "asking", input: saying("free") });
      const { body: copy } = await api.post<{ thread_id: string }>(`/threads/${asked}/copy`, {});
      await shown.go(`/threads/${asked}`);
      const answer = page.getByRole("region", { name: "The graph waits for an answer" }).getByRole("textbox");
      await answer.fill("red");
      await shown.go(`/threads/${copy.thread_id}`);
      await expect.poll(() => page.url()).toContain(copy.thread_id);
      await expect.poll(() => answer.inputValue()).toBe("");
      await shown.go(`/threads/${asked}`);
      await expect.poll(() => answer.inputValue()).toBe("red");
    });

    test("has thrown no error, sent no request elsewhere, and broken no rule of the content policy", () => {
      expect(shown.faults).toEqual([]);
    });
  },
);
