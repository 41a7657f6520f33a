import { fileURLToPath } from "node:url";
import { afterAll, beforeAll } from "vitest";
import { openConsole, SLOW_MS, type ConsoleOptions, type OpenConsole } from "./browser.ts";
import { openGate } from "./graphs/gate.ts";

/** The langgraph.json of the console's own graphs. */
export const GRAPHS = fileURLToPath(new URL("./graphs/langgraph.json", import.meta.url));

/** Opens the console for the tests of a `describe`, and closes it after them. */
export const onConsole = (options: ConsoleOptions, use: (shown: OpenConsole) => unknown): void => {
  let shown: OpenConsole | undefined;
  beforeAll(async () => {
    shown = await openConsole(options);
    await use(shown);
  }, SLOW_MS);
  afterAll(async () => {
    openGate();
    await shown?.close();
  });
};
