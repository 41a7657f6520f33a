import { describe, expect, test } from "vitest";
import { apiOf } from "../helpers/api.ts";
import { eventually } from "../helpers/conditions.ts";
import { reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { GRAPHS, onConsole } from "./on-console.ts";

describe.skipIf(reasonForNoBrowser() !== undefined)(
  "an answer whose process dies in the middle",
  { timeout: SLOW_MS },
  () => {
    let shown: OpenConsole;
    onConsole({ graphConfigFile: GRAPHS, graphProcesses: 1 }, (opened) => (shown = opened));

    /** The maximum number of copies of an answer on the page from now on. */
    const countBeginnings = async (): Promise<() => Promise<number>> => {
      await shown.page.evaluate(`(() => {
        window.most = 0;
        const count = () => {
          const said = document.querySelector("[role=log]")?.textContent ?? "";
          window.most = Math.max(window.most, said.split("token0 ").length - 1);
        };
        new MutationObserver(count).observe(document.body, { childList: true, subtree: true, characterData: true });
      })()`);
      return async () => Number(await shown.page.evaluate("window.most"));
    };

    test("is shown once: the dead attempt's text disappears when the next attempt begins", async () => {
      const { page, server } = shown;
      const beginnings = await countBeginnings();
      const messages = page.getByRole("log", { name: "Messages" }).getByRole("article");
      await shown.go("/?assistant=dying");
      await page.getByRole("heading", { level: 2, name: "dying" }).waitFor();
      await page.getByLabel("Message", { exact: true }).fill("go");
      await page.keyboard.press("Enter");
      // Graph processes start twice, which takes a busy machine longer than a locator waits.
      await messages.getByText("token19").waitFor({ timeout: SLOW_MS });
      await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
      const { body } = await apiOf(server).post<{ attempts: number }[]>("/runs/search", {});
      expect(body.map(({ attempts }) => attempts)).toEqual([2]);
      await eventually("one answer is left", async () => (await messages.count()) === 2, SLOW_MS / 4);
      expect((await messages.last().textContent())?.match(/token0 /g)).toHaveLength(1);
      expect(await beginnings()).toBe(1);
      expect(shown.faults).toEqual([]);
    });

    test("is not shown again after the next one, with which the stream replays it", async () => {
      const { page } = shown;
      const messages = page.getByRole("log", { name: "Messages" }).getByRole("article");
      await page.getByLabel("Message", { exact: true }).fill("go on");
      await page.keyboard.press("Enter");
      await eventually(
        "the second answer is whole, and nothing stands behind it",
        async () =>
          (await messages.count()) === 4 && /token19/.test((await messages.last().textContent()) ?? ""),
        SLOW_MS / 4,
      );
      await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
      await eventually("nothing of the dead attempt is left", async () => {
        const texts = await messages.allTextContents();
        return texts.length === 4 && texts.filter((text) => text.includes("token19")).length === 2;
      });
      expect(shown.faults).toEqual([]);
    });
  },
);
