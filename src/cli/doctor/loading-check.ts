import { loadHandlers } from "../../server/app/auth.ts";
import { loadCustomApp } from "../../server/custom-app/application.ts";
import { loadGraphs } from "../../graphs/graphs.ts";
import { createLogger } from "../../platform/lib/logger.ts";
import { readGraphConfig } from "../../graphs/project/langgraph-json.ts";
import type { ProjectKeys } from "../../platform/config/project-keys.ts";

export interface LoadingRequest {
  part: "graphs" | "auth" | "http.app";
  configPath: string;
  projectKeys: ProjectKeys;
}

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

// The parent may exit while a module is still loading.
process.once("disconnect", () => process.exit(1));
process.once("message", (request: LoadingRequest) => {
  // Open handles of the module would keep the process alive.
  void answer(request).then((found) => process.send?.(found, undefined, {}, () => process.exit(0)));
});
