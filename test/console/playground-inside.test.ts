import { describe, expect, test } from "vitest";
import { eventually } from "../helpers/conditions.ts";
import { reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { openGate } from "./graphs/gate.ts";
import { playgroundOf } from "./playground-person.ts";
import { GRAPHS, onConsole } from "./on-console.ts";

describe.skipIf(reasonForNoBrowser() !== undefined)(
  "subgraphs of the graph of a conversation",
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
    const passGate = (): Promise<unknown> =>
      eventually("a graph waits at the gate", async () => openGate() === 1 || undefined);

    test("are shown while they work: one in a node, and one called by a tool; also after a reload", async () => {
      const { page } = shown;
      await begin("nested");
      await say("Why?");
      const atWork = page.getByRole("region", { name: "Running subgraphs" });
      await atWork.getByText("Inside helper running", { exact: true }).waitFor();
      await atWork.getByText("Let me ask an expert.").first().waitFor();
      await atWork.getByText("Inside helper › thinker running", { exact: true }).waitFor();
      expect(await shown.violations()).toEqual([]);
      await passGate();
      await atWork.getByText("Inside tools").waitFor();
      await atWork.getByText("token0 token1 token2").waitFor();
      expect(await atWork.getByText("Inside helper").count()).toBe(0);
      await page.reload();
      await atWork.getByText("Inside tools").waitFor();
      await atWork.getByText("token0 token1 token2").waitFor();
      await passGate();
      await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
      await atWork.waitFor({ state: "detached" });
    });

    test("are found again under the call of the tool, and at the message of the node", async () => {
      const { page } = shown;
      await page.reload();
      const call = messages().locator("details[data-tool=ask_expert]");
      await call.locator("> summary").click();
      const expert = call.getByRole("region", { name: "Inside tools" });
      await expert.getByText("Why is it so?", { exact: true }).waitFor();
      await expert.getByText("token0 token1 token2").waitFor();
      expect(await shown.violations()).toEqual([]);
      const made = messages().filter({ hasText: "Let me ask an expert." });
      await made.getByRole("button", { name: "Inside" }).click();
      const helper = made.getByRole("region", { name: "Inside helper" });
      await helper.getByText("Let me ask an expert.").waitFor();
      await helper.getByText("notes").waitFor();
      expect(await shown.violations()).toEqual([]);
      await helper.getByRole("link", { name: "Its checkpoints" }).click();
      await page.getByRole("heading", { level: 1, name: "Time travel" }).waitFor();
      await page.getByRole("navigation", { name: "Subgraphs of the thread" }).getByText("helper").waitFor();
    });

    test("are found at a message that a node made from their results in earlier steps", async () => {
      await begin("research");
      await say("looms");
      const report = messages().filter({ hasText: "Report on looms" });
      await report.getByRole("button", { name: "Inside" }).click();
      const found = report.getByRole("region", { name: "Inside investigate" });
      await eventually("the three graphs are shown", async () => (await found.count()) === 3);
      await found.first().getByText("question, sources, findings").waitFor();
      expect(await shown.violations()).toEqual([]);
    });

    test("have thrown no error, sent no request elsewhere, and broken no rule of the content policy", () => {
      expect(shown.faults).toEqual([]);
    });
  },
);
