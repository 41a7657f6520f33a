import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { loadGraphs, type Graphs, type LoadGraphsOptions } from "../../src/graphs/graphs.ts";
import { createLogger } from "../../src/platform/lib/logger.ts";

export const FIXTURES = fileURLToPath(new URL("../fixtures/", import.meta.url));
export const EXAMPLES = fileURLToPath(new URL("../../langgraph.json", import.meta.url));
export const logger = createLogger({ level: "silent" });

export async function aFile(name: string, content: unknown): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "graphs-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, name);
  await writeFile(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

/** A `langgraph.json` for fixtures: `{id: "forms/builders.ts:compiled"}`, or an absolute path. */
export const aConfig = (graphs: Record<string, string>): Promise<string> =>
  aFile("langgraph.json", {
    graphs: Object.fromEntries(Object.entries(graphs).map(([id, path]) => [id, resolve(FIXTURES, path)])),
  });

/** Loads fixtures by `{id: "file:export"}`. */
export async function load(
  graphs: Record<string, string>,
  options: Partial<LoadGraphsOptions> = {},
): Promise<Graphs> {
  return loadConfig(await aConfig(graphs), options);
}

export async function loadConfig(
  configPath: string,
  options: Partial<LoadGraphsOptions> = {},
): Promise<Graphs> {
  const loaded = await loadGraphs({ configPath, logger, ...options });
  onTestFinished(() => loaded.close());
  return loaded;
}

export const failure = (promise: Promise<unknown>): Promise<Error> =>
  promise.then(
    () => Promise.reject(new Error("It was expected to fail.")),
    (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
  );
