import { defineConfig } from "vitest/config";
import { globalSetup, ordinary, plugins } from "./vitest.config.ts";

/** `npm run test:package`: the package, installed by npm from a registry beside several versions of LangGraph, and new projects in each language. */
export default defineConfig({
  plugins,
  test: {
    ...ordinary,
    globalSetup,
    name: "package",
    include: ["test/package/**/*.test.ts"],
    exclude: ["node_modules/**"],
    // npm may have to fetch a hundred packages.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    teardownTimeout: 60_000,
    maxWorkers: 1,
  },
});
