import { defineConfig } from "vitest/config";
import { globalSetup, ordinary, plugins } from "./vitest.config.ts";

/** `npm run test:image`: the image of this repository and those of new projects, built and started. */
export default defineConfig({
  plugins,
  test: {
    ...ordinary,
    globalSetup,
    name: "image",
    include: ["test/image/**/*.test.ts"],
    exclude: ["node_modules/**"],
    // A build installs some hundred packages, on a machine that may be busy.
    testTimeout: 1_800_000,
    hookTimeout: 1_800_000,
    teardownTimeout: 60_000,
    maxWorkers: 1,
  },
});
