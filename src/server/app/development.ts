import type { LoadGraphsOptions } from "../../graphs/graphs.ts";
import { loadGraphs } from "../../graphs/graphs.ts";
import { createReloadingGraphs, type ReloadingGraphs } from "../../graphs/reloading.ts";
import type { createSourceReader } from "../../graphs/source/source-schemas.ts";
import type { ModuleTrace } from "../../platform/lib/module-trace.ts";

/** What a server needs whose graphs are loaded anew while it runs. It belongs to the process. */
export interface Development {
  readonly trace: ModuleTrace;
  /** Told which files of the project graphs were loaded from, in their processes: absolute paths. */
  onFiles(files: readonly string[]): void;
}

/** The graphs of a server in development: `reload` reads the project's files anew, also what they `require`. */
export const openReloadingGraphs = (
  { trace }: Development,
  options: Omit<LoadGraphsOptions, "source" | "edition">,
  openSource: () => ReturnType<typeof createSourceReader> | undefined,
): Promise<ReloadingGraphs> =>
  createReloadingGraphs((edition) => {
    trace.forget();
    return loadGraphs({ ...options, edition, source: openSource() });
  });
