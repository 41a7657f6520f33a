/** Loads something of a project once, as a server would, tells what came of it, and ends. The entry beside this file loads it. */
import { loadHandlers } from "../../server/app/auth.ts";
import { loadCustomApp } from "../../server/custom-app/loading.ts";
import { loadGraphs } from "../../graphs/graphs.ts";
import { createLogger } from "../../platform/lib/logger.ts";
import { readGraphConfig } from "../../graphs/project/langgraph-json.ts";
import type { ProjectKeys } from "../../platform/config/project-keys.ts";

export interface LoadingRequest {
  part: "graphs" | "auth" | "http.app";
  configPath: string;
  projectKeys: ProjectKeys;
}

/** `found`: names of what is there. `failure`: sentences that say what can't be used. */
export type LoadingAnswer = { found: readonly string[] } | { failure: string };

const load = async ({ part, configPath, projectKeys }: LoadingRequest): Promise<readonly string[]> => {
  const logger = createLogger({ level: "silent" });
  if (part === "graphs") return (await loadGraphs({ configPath, projectKeys, logger })).ids;
  const { auth, http } = await readGraphConfig(configPath, projectKeys);
  if (part === "auth") return auth === undefined ? [] : (await loadHandlers(auth)).uncovered;
  if (http.app !== undefined) await loadCustomApp(http.app, logger);
  return [];
};

const answer = async (request: LoadingRequest): Promise<LoadingAnswer> => {
  try {
    return { found: await load(request) };
  } catch (error) {
    return { failure: error instanceof Error ? error.message : String(error) };
  }
};

// The parent process may end first, while a module never finishes loading.
process.once("disconnect", () => process.exit(1));
process.once("message", (request: LoadingRequest) => {
  // Not by itself: something that was opened meanwhile would keep the process.
  void answer(request).then((found) => process.send?.(found, undefined, {}, () => process.exit(0)));
});
