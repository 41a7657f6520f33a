import type { LoadGraphsOptions } from "../../graphs/graphs.ts";
import { loadGraphs } from "../../graphs/graphs.ts";
import { createReloadingGraphs, type ReloadingGraphs } from "../../graphs/reloading.ts";
import type { createSourceReader } from "../../graphs/source/source-schemas.ts";
import type { ModuleTrace } from "../../platform/lib/module-trace.ts";

export interface Development {
  readonly trace: ModuleTrace;
  /** Absolute paths that graph processes have loaded. */
  onFiles(files: readonly string[]): void;
}

export const openReloadingGraphs = (
  { trace }: Development,
  options: Omit<LoadGraphsOptions, "source" | "edition">,
  openSource: () => ReturnType<typeof createSourceReader> | undefined,
): Promise<ReloadingGraphs> =>
  createReloadingGraphs((edition) => {
    trace.forget();
    return loadGraphs({ ...options, edition, source: openSource() });
  });
