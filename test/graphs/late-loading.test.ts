import { expect, test } from "vitest";
import { loadGraphs } from "../../src/graphs/graphs.ts";
import { eventually } from "../helpers/conditions.ts";
import { listeningLogger } from "../helpers/parts.ts";
import { aConfig, aFile, failure } from "./helpers.ts";

test.each([
  [
    "whose module never finishes loading",
    "await new Promise(() => undefined);\nexport const graph = undefined;",
  ],
  ["that is a promise which is not kept", "export const graph = new Promise(() => undefined);"],
])("a graph %s is named in the log once, and loading can be given up", async (_what, text) => {
  const file = await aFile("endless.mjs", text);
  const configPath = await aConfig({ endless: `${file}:graph`, counter: "counter.ts:graph" });
  const { logger, lines } = listeningLogger();
  const leaving = new AbortController();
  const reason = new Error("no longer wanted");
  const loading = failure(loadGraphs({ configPath, logger, signal: leaving.signal, lateMs: 5 }));
  const named = () => lines.filter((line) => line.includes("graph 'endless' has not finished loading"));
  await eventually("the log names it", () => named().length > 0);
  leaving.abort(reason);
  expect(await loading).toBe(reason);
  expect(named()).toHaveLength(1);
});

test("a project of many graphs loads without a warning of Node", async () => {
  const names = Array.from({ length: 30 }, (_, index) => `graph-${index}`);
  const configPath = await aConfig(Object.fromEntries(names.map((name) => [name, "counter.ts:graph"])));
  const warnings: Error[] = [];
  const note = (warning: Error): unknown => warnings.push(warning);
  process.on("warning", note);
  const { logger } = listeningLogger();
  await loadGraphs({ configPath, logger, signal: new AbortController().signal });
  // Node emits a warning in the next tick.
  await new Promise(setImmediate);
  process.off("warning", note);
  expect(warnings).toEqual([]);
});
