import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { globalSetup, ordinary, plugins } from "./vitest.config.ts";

/** `npm run test:console`: every page of the console, in Chromium. `npm run test:slow` has the tests of what all of them depend on. */
export default defineConfig({
  plugins,
  test: {
    ...ordinary,
    globalSetup,
    name: "console",
    include: ["test/console/**/*.test.ts"],
    teardownTimeout: 60_000,
    // As in vitest.config.ts.
    maxWorkers: Math.max(3, availableParallelism()),
  },
});
