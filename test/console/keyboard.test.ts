import { fileURLToPath } from "node:url";
import type { Locator } from "playwright-core";
import { describe, expect, test } from "vitest";
import { apiOf } from "../helpers/api.ts";
import { eventually } from "../helpers/conditions.ts";
import { reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { tabTo } from "./keyboard.ts";
import { onConsole } from "./on-console.ts";

const PROJECT = fileURLToPath(new URL("../../langgraph.json", import.meta.url));

describe.skipIf(reasonForNoBrowser() !== undefined)("the keyboard alone", { timeout: SLOW_MS }, () => {
  let shown: OpenConsole;
  onConsole({ graphConfigFile: PROJECT, context: { viewport: { width: 1280, height: 720 } } }, (opened) => {
    shown = opened;
  });

  test("makes a thread, asks, approves, forks, and compares the states and the runs", async () => {
    const { page } = shown;
    const api = apiOf(shown.server);
    const press = (keys: string): Promise<void> => page.keyboard.press(keys);
    const choose = async (control: string, selected: Locator, option: string | RegExp): Promise<void> => {
      await tabTo(page, control);
      await eventually(`${String(option)} is chosen`, async () => {
        const text = (await selected.locator("option:checked").textContent()) ?? "";
        if (typeof option === "string" ? text === option : option.test(text)) return true;
        await press("ArrowDown");
        return undefined;
      });
    };
    const command = async (words: string): Promise<void> => {
      await press("Control+k");
      await page.getByLabel("Search commands").waitFor();
      await page.keyboard.type(words);
      await page.getByRole("option").first().waitFor();
      await press("Enter");
      await page.getByLabel("Search commands").waitFor({ state: "detached" });
    };
    const approve = async (): Promise<void> => {
      await page.getByRole("region", { name: "The graph waits for an answer" }).waitFor();
      await tabTo(page, "approve");
      await press("Enter");
    };

    await page.getByRole("navigation").first().waitFor();
    await command("Go to Playground");
    const assistant = page.getByLabel("Assistant", { exact: true });
    await assistant.waitFor();
    await choose("Assistant", assistant, "approval");
    await tabTo(page, "Message");
    await page.keyboard.type("a refund");
    await press("Enter");
    await approve();
    await page
      .getByText(/^Sent: .*a refund/)
      .first()
      .waitFor();

    await tabTo(page, "Edit");
    await press("Enter");
    await page.getByLabel("Edited message").waitFor();
    await press("Control+a");
    await page.keyboard.type("a complaint");
    await press("Control+Enter");
    await approve();
    await page
      .getByText(/^Sent: .*a complaint/)
      .first()
      .waitFor();
    const threadId = new URL(page.url()).hash.split("/").at(-1) ?? "";
    expect(await api.runs(threadId)).toHaveLength(4);

    await command("Time travel (this thread)");
    const compared = page.getByLabel("Compared with");
    await compared.waitFor();
    await choose("Compared with", compared, /update|input|step/i);
    await page.getByRole("list", { name: "Differences" }).getByRole("listitem").first().waitFor();

    await command("Go to Runs");
    const [run] = await api.runs(threadId);
    await page.locator(`tr[data-run="${run?.run_id ?? ""}"]`).waitFor();
    await tabTo(page, `…${run?.run_id.slice(-8) ?? ""}`);
    await press("Enter");
    await page.getByRole("button", { name: "Compare" }).waitFor();
    await tabTo(page, "Compare");
    await press("Enter");
    const dialog = page.getByRole("dialog", { name: "Compare with another run" });
    await dialog.getByRole("link").first().waitFor();
    await tabTo(page, /same thread/);
    await press("Enter");
    await page.getByRole("heading", { level: 1, name: /Compare/ }).waitFor();
    expect(await shown.violations()).toEqual([]);
    expect(shown.faults).toEqual([]);
  });
});
