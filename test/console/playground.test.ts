import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openConsole, reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";

describe.skipIf(reasonForNoBrowser() !== undefined)("the playground", { timeout: SLOW_MS }, () => {
  let shown: OpenConsole;
  beforeAll(async () => {
    shown = await openConsole({ context: { viewport: { width: 1400, height: 900 } } });
  }, SLOW_MS);
  afterAll(() => shown?.close());

  const messages = () => shown.page.getByRole("log", { name: "Messages" }).getByRole("article");
  const say = async (text: string): Promise<void> => {
    await shown.page.getByLabel("Message", { exact: true }).fill(text);
    await shown.page.keyboard.press("Enter");
  };

  test("makes a thread of the first message, and shows the answer with its tool calls and their results", async () => {
    const { page } = shown;
    await say("What is the weather in Paris?");
    await page.waitForURL(/#\/threads\/[0-9a-f-]{36}$/);
    await messages()
      .last()
      .getByText(/^It is .* in Paris, .* °C\.$/)
      .waitFor();
    const tool = page.locator("details[data-tool=get_weather]");
    expect(await tool.locator("[data-status]").textContent()).toBe("success");
    await tool.locator("> summary").click();
    await tool
      .locator("p")
      .getByText(/It is .* in Paris/)
      .waitFor();
    expect(await shown.violations()).toEqual([]);
  });

  test("goes on with the thread after a reload", async () => {
    const { page } = shown;
    await page.reload();
    await messages().getByText("What is the weather in Paris?").waitFor();
    await say("I am here again.");
    await messages()
      .getByText(/^You said: "I am here again\."/)
      .waitFor();
    await say("My name is Ada.");
    await messages().getByText("Your name is Ada.").waitFor();
  });

  test("has thrown nothing, asked nobody else, and broken no rule of its content policy", () => {
    expect(shown.faults).toEqual([]);
  });
});
