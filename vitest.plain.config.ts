import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { globalSetup, ordinary, plugins, WITH_MODULES_REPLACED } from "./vitest.config.ts";

/**
 * `npm run test:plain`: the engine's part of the tests on a database that has neither LISTEN nor advisory locks nor a
 * list of its sessions (src/platform/database/accelerators.ts). Tests of what can't hold there skip
 * themselves (`IS_PLAIN` in test/helpers/app.ts); docs/scaling.md lists them.
 */
export default defineConfig({
  plugins,
  test: {
    ...ordinary,
    globalSetup,
    name: "plain",
    include: ["test/{engine,api/runs,state/checkpoints}/**/*.test.ts"],
    // They have no database.
    exclude: [...ordinary.exclude, ...WITH_MODULES_REPLACED, "test/engine/outbox/**"],
    env: {
      ...ordinary.env,
      DATABASE_PLAIN: "true",
    },
    teardownTimeout: 60_000,
    // As in vitest.config.ts: here they wait even longer.
    maxWorkers: Math.max(3, availableParallelism()),
  },
});
