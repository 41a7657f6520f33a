import { expect, onTestFinished, test } from "vitest";
import { openConsole, reasonForNoBrowser, SLOW_MS } from "../console/browser.ts";

test.skipIf(reasonForNoBrowser() !== undefined)(
  "the console opens in Chromium and shows the graphs of its server",
  { timeout: SLOW_MS },
  async () => {
    const shown = await openConsole();
    onTestFinished(() => shown.close());
    await shown.go("/assistants");
    await shown.page.getByRole("main").getByText("two-step").filter({ visible: true }).first().waitFor();
    expect(shown.faults).toEqual([]);
  },
);
