import { describe, expect, test } from "vitest";
import { eventually } from "../helpers/conditions.ts";
import { reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { openGate } from "./graphs/gate.ts";
import { playgroundOf } from "./playground-person.ts";
import { GRAPHS, onConsole } from "./on-console.ts";

interface KnownRun {
  status: string;
  created_at: string;
  kwargs: { input?: { messages?: { content?: unknown }[] } | null; context?: Record<string, unknown> };
}

describe.skipIf(reasonForNoBrowser() !== undefined)(
  "runs that the playground starts",
  { timeout: SLOW_MS },
  () => {
    let shown: OpenConsole;
    onConsole(
      {
        graphConfigFile: GRAPHS,
        context: { viewport: { width: 1280, height: 800 } },
      },
      (opened) => (shown = opened),
    );

    const { messages, say, begin } = playgroundOf(() => shown);
    const threadId = (): string => /[0-9a-f-]{36}/.exec(shown.page.url())?.[0] ?? "";
    const runs = async (): Promise<KnownRun[]> =>
      ((await shown.server.client.get(`/threads/${threadId()}/runs?limit=100`)).body as KnownRun[]).sort(
        (one, other) => (one.created_at < other.created_at ? -1 : 1),
      );
    const openOptions = async () => {
      await shown.page.getByRole("button", { name: /^Run options/ }).click();
      return shown.page.getByRole("dialog");
    };
    const passGate = (): Promise<unknown> =>
      eventually("a run waits at the gate", async () => openGate() === 1 || undefined);

    test("wait in order behind a running one; each can be withdrawn, and then never runs", async () => {
      const { page } = shown;
      await begin("waiting");
      await say("first");
      await page.getByRole("button", { name: "Stop" }).waitFor();
      const queue = page.getByRole("region", { name: "Queued messages" });
      for (const text of ["second", "third", "fourth"]) {
        await say(text);
        await queue.getByText(text).waitFor();
      }
      const waiting = () => queue.getByRole("listitem").locator("span").allTextContents();
      expect(await waiting()).toEqual(["second", "third", "fourth"]);
      expect(await shown.violations()).toEqual([]);
      await page.reload();
      await queue.getByRole("button", { name: "Withdraw “third”" }).click();
      await expect.poll(waiting).toEqual(["second", "fourth"]);
      expect((await runs()).map(({ status }) => status)).toEqual([
        "running",
        "pending",
        "interrupted",
        "pending",
      ]);
      for (const text of ["first", "second", "fourth"]) {
        await passGate();
        await messages().getByText(`Heard: ${text}`).waitFor();
      }
      await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
      await queue.waitFor({ state: "detached" });
      await expect.poll(() => messages().count()).toBe(6);
    });

    test("stop at breakpoints, show the next nodes, and continue on request", async () => {
      const { page } = shown;
      await begin("agent");
      const form = await openOptions();
      await form.getByLabel("Stop before tools").check();
      await form.getByLabel("Stop after every node").check();
      expect(await form.getByLabel("Stop after agent").isDisabled()).toBe(true);
      await form.getByLabel("Stop after every node").uncheck();
      expect(await shown.violations()).toEqual([]);
      await form.getByRole("button", { name: "Use for the next runs" }).click();
      await page.getByRole("button", { name: "Run options: stop before tools" }).waitFor();
      await say("What is the weather in Paris?");
      await page.getByText("The graph has stopped before tools.").waitFor();
      expect(await shown.violations()).toEqual([]);
      expect(await page.locator("details[data-tool=get_weather] [data-status]").count()).toBe(0);
      await page.getByRole("button", { name: "Continue" }).click();
      const answer = messages()
        .last()
        .getByText(/^It is .* in Paris, .* °C\.$/);
      await answer.waitFor();
      // A regenerated answer stops there, too: a branch is a run like any other.
      await messages().nth(1).getByRole("button", { name: "Regenerate" }).click();
      await page.getByText("The graph has stopped before tools.").waitFor();
      const last = await openOptions();
      await last.getByText("Configuration", { exact: true }).click();
      await last.getByLabel("Recursion limit (steps)").fill("0");
      await last.getByText("Configuration", { exact: true }).click();
      await last.getByRole("button", { name: "Use for the next runs" }).click();
      // The error is visible, and its field is focused.
      await last.locator("input[type=number]:focus").waitFor();
      await last.getByRole("button", { name: "Clear all" }).click();
      await page.getByRole("button", { name: "Run options", exact: true }).waitFor();
      await page.getByRole("button", { name: "Continue" }).click();
      await answer.waitFor();
    });

    test("get the context from the form of the graph's schema", async () => {
      await begin("agent");
      const form = await openOptions();
      await form.getByLabel("system_prompt").fill("Be brief.");
      await form.getByRole("button", { name: "Use for the next runs" }).click();
      await say("hello");
      await messages().getByText("You said").waitFor();
      expect((await runs()).map(({ kwargs }) => kwargs.context)).toEqual([{ system_prompt: "Be brief." }]);
      // The values are there again, and can be reset.
      const again = await openOptions();
      expect(await again.getByLabel("system_prompt").inputValue()).toBe("Be brief.");
      await again.getByRole("button", { name: "Clear all" }).click();
    });

    test("begin at the checkpoint from which time travel opened the playground", async () => {
      const { page } = shown;
      await begin("agent");
      for (const text of ["one", "two"]) {
        await say(text);
        await messages()
          .getByText(new RegExp(`^You said: "${text}"`))
          .waitFor();
      }
      const thread = threadId();
      const { body } = await shown.server.client
        .post(`/threads/${thread}/history`)
        .send({ limit: 100, select: ["values.messages", "checkpoint", "next"] });
      const states = body as {
        values: { messages?: unknown[] };
        next: string[];
        checkpoint: { checkpoint_id: string };
      }[];
      const answered = states.find(({ values, next }) => values.messages?.length === 2 && next.length === 0);
      await shown.go(`/threads/${thread}/history?checkpoint=${answered?.checkpoint.checkpoint_id ?? ""}`);
      await page.getByRole("link", { name: "Continue in the playground" }).click();
      await page.getByText("This is an earlier state of the thread.").waitFor();
      await expect.poll(() => messages().count()).toBe(2);
      expect(await shown.violations()).toEqual([]);
      await page.reload();
      await page.getByText("This is an earlier state of the thread.").waitFor();
      await say("other");
      await messages()
        .getByText(/^You said: "other"/)
        .waitFor();
      await messages().nth(2).getByRole("group", { name: "Branches" }).getByText("2/2").waitFor();
      expect(await messages().count()).toBe(4);
      expect(page.url()).toBe(`${shown.server.url}/console/#/threads/${thread}`);
      // A state with a next node can be executed again unchanged.
      const due = states.find(({ next }) => next[0] === "agent");
      await shown.go(`/threads/${thread}?checkpoint=${due?.checkpoint.checkpoint_id ?? ""}`);
      await page.getByRole("button", { name: "Continue with agent" }).click();
      await page.getByText(/^This is /).waitFor({ state: "detached" });
      await messages()
        .getByText(/^You said: "two"/)
        .waitFor();
    });

    test("have thrown no error, sent no request elsewhere, and broken no rule of the content policy", () => {
      expect(shown.faults).toEqual([]);
    });
  },
);
