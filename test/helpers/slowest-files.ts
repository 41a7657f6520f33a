import { relative } from "node:path";
import type { Reporter, TestModule } from "vitest/node";

const FILES_SHOWN = 10;

export default class SlowestFiles implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const lines = modules
      .map((module) => ({ file: relative(process.cwd(), module.moduleId), ms: module.diagnostic().duration }))
      .sort((a, b) => b.ms - a.ms)
      .slice(0, FILES_SHOWN)
      .map(({ file, ms }) => `  ${(ms / 1_000).toFixed(1).padStart(6)} s  ${file}\n`);
    process.stdout.write(`\nThe slowest files:\n${lines.join("")}`);
  }
}
