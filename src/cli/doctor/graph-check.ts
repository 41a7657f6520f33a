/** Loads the graphs of a project once, tells what came of it, and ends. The entry beside this file loads it. */
import { loadGraphs } from "../../graphs/graphs.ts";
import { createLogger } from "../../lib/logger.ts";
import type { ProjectKeys } from "../../config/project-keys.ts";

export interface GraphCheckRequest {
  configPath: string;
  projectKeys: ProjectKeys;
}

/** `failure`: sentences that name each graph that can't be served. */
export type GraphCheckAnswer = { ids: readonly string[] } | { failure: string };

const answer = async ({ configPath, projectKeys }: GraphCheckRequest): Promise<GraphCheckAnswer> => {
  const logger = createLogger({ level: "silent" });
  try {
    return { ids: (await loadGraphs({ configPath, projectKeys, logger })).ids };
  } catch (error) {
    return { failure: error instanceof Error ? error.message : String(error) };
  }
};

process.once("message", (request: GraphCheckRequest) => {
  // Not by itself: a graph that has opened something would keep the process.
  void answer(request).then((found) => process.send?.(found, undefined, {}, () => process.exit(0)));
});
