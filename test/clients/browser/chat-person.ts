import { expect } from "vitest";
import type { Tab } from "./chromium.ts";

/** Its echo takes the offline model more than a second: time to stop it, or to reload the page. */
export const LONG_TEXT = Array.from({ length: 120 }, (_, index) => `word${index}`).join(" ");

const PATIENCE = { timeout: 60_000, interval: 20 };

/** A person's view and actions in a tab. Reads wait until the element exists. */
export const personAt = ({ page }: Tab) => {
  const main = page.locator("main");
  const items = page.getByRole("list", { name: "messages" }).locator("li");
  const interrupt = page.getByRole("region", { name: "interrupt" });

  const person = {
    async type(text: string): Promise<void> {
      await page.getByLabel("text").fill(text);
    },
    async say(text: string): Promise<void> {
      await person.type(text);
      await person.press("Send");
    },
    press: (name: string | RegExp) =>
      page
        .getByRole("button", { name, exact: typeof name === "string" })
        .first()
        .click(),
    reload: () => page.reload(),

    /** The messages as `[type, text]`. */
    messages: (): Promise<[string, string][]> =>
      items.evaluateAll((elements) =>
        elements.map((element): [string, string] => [
          element.getAttribute("data-type") ?? "",
          element.querySelector(".text")?.textContent ?? "",
        ]),
      ),
    async lastText(): Promise<string> {
      return (await person.messages()).at(-1)?.[1] ?? "";
    },
    interrupt: async (): Promise<unknown> =>
      (await interrupt.count()) > 0 ? JSON.parse(await interrupt.locator("pre").innerText()) : undefined,
    toolCalls: () => page.getByRole("list", { name: "tool calls" }).locator("li").allInnerTexts(),
    error: async (): Promise<string | undefined> => {
      const alert = page.getByRole("alert");
      return (await alert.count()) > 0 ? alert.first().innerText() : undefined;
    },
    async untilSent(): Promise<void> {
      await expect.poll(() => main.getAttribute("data-sending"), PATIENCE).toBe("false");
    },
    threadId: async (): Promise<string> => (await main.getAttribute("data-thread")) ?? "",

    /** Waits until the thread exists and no run is active. */
    async untilQuiet(): Promise<void> {
      await expect.poll(() => main.getAttribute("data-ready"), PATIENCE).toBe("true");
      await expect.poll(() => main.getAttribute("data-loading"), PATIENCE).toBe("false");
    },
    /** Waits until a part of an answer is visible while the rest is still streaming. */
    async untilTokensCome(): Promise<void> {
      await expect
        .poll(async () => {
          const [type, text] = (await person.messages()).at(-1) ?? [];
          return type === "ai" && (text ?? "").length > 0;
        }, PATIENCE)
        .toBe(true);
    },
    until: <Value>(look: () => Promise<Value>) => expect.poll(look, PATIENCE),
  };
  return person;
};
