import { defineConfig } from "vitest/config";
import { globalSetup, ordinary } from "./vitest.config.ts";

/**
 * `npm run test:plain`: the engine's part of the tests on a database that has neither LISTEN nor advisory locks nor a
 * list of its sessions (src/database/accelerators.ts), as some distributed ones. What can't hold there is left out.
 */
const NOT_WITHOUT: Readonly<Record<string, string>> = {};

export default defineConfig({
  test: {
    ...ordinary,
    globalSetup,
    name: "plain",
    include: ["test/{queue,engine,runs,events,checkpoints}/**/*.test.ts"],
    exclude: [...ordinary.exclude, ...Object.keys(NOT_WITHOUT)],
    env: {
      ...ordinary.env,
      DATABASE_LISTEN: "false",
      DATABASE_ADVISORY_LOCKS: "false",
      DATABASE_SESSIONS: "false",
    },
    teardownTimeout: 60_000,
  },
});
