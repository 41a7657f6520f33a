import type { ModuleTrace } from "../../platform/lib/module-trace.ts";

export interface Development {
  readonly trace: ModuleTrace;
  /** Absolute paths that graph processes have loaded. */
  onFiles(files: readonly string[]): void;
}
