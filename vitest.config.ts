import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/bench/**", "node_modules/**"],
    // One real PostgreSQL for the whole run; every test that needs a database takes a fresh copy of a template.
    globalSetup: ["test/helpers/global-setup.ts"],
    // Without it `graph.stream` can end before LangChain has delivered the last tokens (see src/main.ts).
    env: { LANGCHAIN_CALLBACKS_BACKGROUND: "false", LANGSMITH_TRACING: "false" },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    teardownTimeout: 60_000,
  },
});
