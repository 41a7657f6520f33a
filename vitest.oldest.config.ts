import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import {
  globalSetup,
  ordinary,
  plugins,
  THOROUGH,
  WITH_MODULES_REPLACED,
  WITH_PROCESSES,
} from "./vitest.config.ts";

/** `npm run test:oldest` runs these with the oldest LangGraph (test/oldest-langgraph/main.ts). */
export default defineConfig({
  plugins,
  test: {
    ...ordinary,
    globalSetup,
    name: "oldest",
    include: [
      "test/oldest-langgraph/**/*.test.ts",
      "test/graphs/**/*.test.ts",
      "test/engine/*.test.ts",
      "test/engine/events/**/*.test.ts",
      "test/engine/executors/**/*.test.ts",
      "test/protocols/{agui,streaming,ui}/**/*.test.ts",
      "test/api/runs/questions.test.ts",
      "test/api/store/postgres-store.test.ts",
      "test/api/threads/state*.test.ts",
      "test/state/**/*.test.ts",
    ],
    exclude: [
      ...ordinary.exclude,
      ...WITH_PROCESSES,
      ...THOROUGH,
      ...WITH_MODULES_REPLACED,
      // The official tests of a checkpointer need a newer one.
      "test/state/checkpoints/validation.test.ts",
      // With durability `sync`, this release waits for checkpoints at the run's end only.
      "test/engine/events/refused-steps.test.ts",
    ],
    teardownTimeout: 60_000,
    // As in vitest.config.ts.
    maxWorkers: Math.max(3, availableParallelism()),
  },
});
