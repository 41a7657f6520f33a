import type { Page } from "playwright-core";
import type { OpenConsole } from "./browser.ts";

/**
 * A person's view and actions in the playground.
 * @param shown returns the console; called for each action, because tests open it later
 */
export const playgroundOf = (shown: () => OpenConsole) => {
  const messagesOf = (page: Page) => page.getByRole("log", { name: "Messages" }).getByRole("article");
  return {
    messagesOf,
    messages: () => messagesOf(shown().page),
    async say(text: string, page: Page = shown().page): Promise<void> {
      await page.getByLabel("Message", { exact: true }).fill(text);
      await page.keyboard.press("Enter");
    },
    async begin(assistant: string): Promise<void> {
      const { page, go } = shown();
      await go(`/?assistant=${assistant}`);
      await page.getByRole("heading", { level: 2, name: assistant }).waitFor();
    },
  };
};
