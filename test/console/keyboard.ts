import type { Page } from "playwright-core";

const TABS_AT_MOST = 150;

/** As a screen reader names it. */
const focusedName = (page: Page): Promise<string> =>
  page.evaluate(`(() => {
    const one = document.activeElement;
    const labelled = document.getElementById(one.getAttribute("aria-labelledby") ?? "");
    const label =
      one.getAttribute("aria-label") ?? labelled?.textContent ?? one.labels?.[0]?.textContent ?? one.textContent ?? "";
    return label.trim();
  })()`);

/** Presses Tab until the focus is on what has this name. */
export const tabTo = async (page: Page, name: string | RegExp): Promise<void> => {
  const seen: string[] = [];
  for (let tabs = 0; tabs < TABS_AT_MOST; tabs += 1) {
    const label = await focusedName(page);
    if (typeof name === "string" ? label === name : name.test(label)) return;
    seen.push(label.slice(0, 30));
    await page.keyboard.press("Tab");
  }
  throw new Error(`Tab never came to ${String(name)}, but to: ${seen.join(" | ")}`);
};
