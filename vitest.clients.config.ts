import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { COMPATIBILITY, globalSetup, ordinary, plugins } from "./vitest.config.ts";

/**
 * `npm run test:clients`: what docs/compatibility.md shows, with every line of the SDK. `.ci/run` has two of them.
 * With `UPDATE_COMPATIBILITY=1` it writes the document anew.
 */
export default defineConfig({
  plugins,
  test: {
    ...ordinary,
    globalSetup,
    name: "clients",
    include: ["test/{clients,contract}/**/*.test.ts", "test/clients/**/*.acceptance.ts"],
    env: { ...ordinary.env, SDK_LINES: "all" },
    reporters: ["default", [COMPATIBILITY, { isWhole: true }]],
    teardownTimeout: 60_000,
    // As in vitest.config.ts.
    maxWorkers: Math.max(3, availableParallelism()),
  },
});
