import { defineConfig } from "vitest/config";
import { globalSetup, ordinary, plugins, WITH_MODULES_REPLACED } from "./vitest.config.ts";

const nodes = process.env["TEST_CITUS_NODES"];
if (nodes === undefined)
  process.stdout.write("Skipped: TEST_CITUS_NODES names no cluster (docs/scaling.md).\n");

/** `npm run test:citus`: the tests of what a distributed database changes, on a cluster (docs/scaling.md). */
export default defineConfig({
  plugins,
  test: {
    ...ordinary,
    globalSetup,
    name: "citus",
    include:
      nodes === undefined
        ? []
        : [
            "test/{access,api,engine,protocols,state/checkpoints}/**/*.test.ts",
            "test/commands/distributed.test.ts",
          ],
    passWithNoTests: true,
    // Plans are PostgreSQL's own in each part, and the last one makes parts itself.
    exclude: [
      ...ordinary.exclude,
      ...WITH_MODULES_REPLACED,
      "test/**/*plans*.test.ts",
      "test/**/*-cost.test.ts",
      "test/api/threads/search-over-parts.test.ts",
    ],
    teardownTimeout: 60_000,
    maxWorkers: 2,
  },
});
