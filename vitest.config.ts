import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { compiledPrograms } from "./test/helpers/compiled-package.ts";

/** One test for each kind of process: the only ones of `npm test` that start any. */
export const SMOKE_TESTS = ["test/smoke/**/*.test.ts"];

/**
 * Tests that start processes, kill them, or load the machine: each takes seconds, most of them spent waiting.
 * `test/kinds.test.ts` holds the list: a test that starts a process, a graph process included, stands in it.
 */
export const WITH_PROCESSES = [
  "test/abuse/**/*.test.ts",
  "test/bench/counts/**/*.test.ts",
  "test/clients/browser/**/*.test.ts",
  "test/clients/python/**/*.test.ts",
  "test/commands/**/*.test.ts",
  "test/console/**/*.test.ts",
  "test/faults/**/*.test.ts",
  "test/cli/import/**/*.test.ts",
  "test/main/**/*.test.ts",
  "test/monitoring/**/*.test.ts",
  "test/readme/**/*.test.ts",
  "test/access/runs/runs.test.ts",
  "test/api/runs/traces/hostile-process.test.ts",
  "test/server/app/ready-with-graphs.test.ts",
  "test/cli/image.test.ts",
  "test/server/custom-app/own-server.test.ts",
  "test/platform/database/awaiting.test.ts",
  "test/platform/database/embedded.test.ts",
  "test/platform/database/failover.test.ts",
  "test/platform/database/pooler.test.ts",
  "test/platform/database/pooling.test.ts",
  "test/platform/encryption/canary.test.ts",
  "test/platform/telemetry/exported.test.ts",
  "test/platform/telemetry/hostile.test.ts",
  "test/engine/alone.test.ts",
  "test/engine/executors/deaths.test.ts",
  "test/engine/executors/orphans.test.ts",
  "test/engine/executors/output.test.ts",
  "test/engine/executors/spare.test.ts",
  "test/engine/executors/same-as-inline.test.ts",
  "test/engine/heartbeats.test.ts",
  "test/engine/looping.test.ts",
  "test/engine/lost-workers.test.ts",
  "test/engine/traces/killed-servers.test.ts",
  "test/engine/events/before-checkpoints.test.ts",
  "test/engine/events/before-failure.test.ts",
  "test/engine/events/protocol/graph-processes.test.ts",
  "test/engine/events/thread-recovery.test.ts",
  "test/graphs/langsmith/langsmith.test.ts",
  "test/graphs/processes.test.ts",
  "test/graphs/source/**/*.test.ts",
  "test/protocols/mcp/killed-server.test.ts",
  "test/protocols/a2a/servers.test.ts",
  "test/protocols/agui/killed.test.ts",
  "test/protocols/streaming/cuts.test.ts",
  "test/protocols/streaming/subgraph-deaths.test.ts",
  "test/protocols/webhooks/tls.test.ts",
];

/**
 * The pages of the console one by one: 5 minutes of browsers. `npm run test:slow` opens every page, and talks to a graph;
 * `npm run test:console` runs these tests, too.
 */
export const CONSOLE_PAGES = [
  "assistants",
  "connections",
  "crons",
  "examples",
  "graph",
  "history",
  "inbox",
  "mounting",
  "overview",
  "playground-chat",
  "playground-hostile",
  "playground-inside",
  "playground-interrupts",
  "playground-runs",
  "playground-threads",
  "queue",
  "run-page",
  "runs",
  "schema-form",
  "store",
].map((page) => `test/console/${page}.test.ts`);

/**
 * Tests that keep a core busy for seconds each, and are rarely what a change breaks: thousands of requests, hundreds of
 * graphs or states, answers and events of many megabytes, or the compiler over the whole source.
 */
export const THOROUGH = [
  "test/access/matrix/interleavings.test.ts",
  "test/access/matrix/timing.test.ts",
  "test/api/assistants/abuse.test.ts",
  "test/differential/histories.test.ts",
  "test/state/checkpoints/graphs.test.ts",
  "test/state/checkpoints/memory.test.ts",
  "test/state/checkpoints/object-store-server.test.ts",
  "test/contract/values.test.ts",
  "test/differential/streams.test.ts",
  "test/platform/database/large-pages.test.ts",
  "test/platform/database/row-types.test.ts",
  "test/engine/events/large-events.test.ts",
  "test/foreign-names.test.ts",
  "test/http/large-answers.test.ts",
  "test/http/large-pages.test.ts",
  "test/http/odd-text.test.ts",
  "test/engine/queue/claim-plans.test.ts",
  "test/api/store/postgres-store.property.test.ts",
  "test/api/threads/state-equality.test.ts",
];

/**
 * Tests that put something else in the place of a module, or load one anew: no other file may have loaded it before. And
 * tests that count the timers of their process: servers of other files may leave some for a moment.
 */
export const WITH_MODULES_REPLACED = [
  "test/server/app/graph-processes.test.ts",
  "test/engine/executors/graph-process.test.ts",
  "test/engine/executors/pool.test.ts",
  "test/examples/auth.test.ts",
  "test/engine/events/log-reader.test.ts",
  "test/engine/worker.test.ts",
  "test/protocols/streaming/arrivals.test.ts",
];

/** These files begin first. Otherwise the last of them would run alone at the end, on one of the cores. */
export const LONGEST = [
  "test/engine/executors/deaths.test.ts",
  "test/main/dev/reloading.test.ts",
  "test/main/package.test.ts",
  "test/main/main.test.ts",
  "test/faults/short/faults.test.ts",
  "test/abuse/short.test.ts",
  "test/main/dev/restarting.test.ts",
  "test/engine/lost-workers.test.ts",
  "test/engine/traces/killed-servers.test.ts",
  "test/engine/executors/output.test.ts",
  "test/access/matrix/interleavings.test.ts",
  "test/commands/doctor.test.ts",
  "test/platform/database/embedded.test.ts",
  "test/platform/database/failover.test.ts",
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number =>
      LONGEST.findLastIndex((file) => moduleId.endsWith(file));
    const sorted = await super.sort(files);
    const isLong = (file: TestSpecification): boolean => rank(file) >= 0;
    return [
      ...sorted.filter(isLong).sort((a, b) => rank(a) - rank(b)),
      ...sorted.filter((file) => !isLong(file)),
    ];
  }
}

/** One real PostgreSQL for the whole run; every test that needs a database takes a fresh copy of a template. */
export const globalSetup = ["test/helpers/global-setup.ts"];

export const ordinary = {
  exclude: ["test/image/**", "test/package/**", "node_modules/**"],
  // Without it `graph.stream` can end before LangChain has delivered the last tokens (see src/cli/start/serve.ts).
  env: { LANGCHAIN_CALLBACKS_BACKGROUND: "false", LANGSMITH_TRACING: "false" },
  // Many times what any needs, and what is waited for (test/helpers/conditions.ts): a busy machine breaks none.
  testTimeout: 300_000,
  hookTimeout: 300_000,
  expect: { poll: { timeout: 120_000 } },
  // Files share processes, and what these have loaded: LangGraph alone took each file 2 s. There is nothing to keep
  // apart, since no module has state that changes (test/architecture.test.ts).
  isolate: false,
};

export const plugins = [compiledPrograms()];

/** Holds docs/compatibility.md against the tests. `.ci/run` names it, too: there it is on the command line. */
export const COMPATIBILITY = "./test/compatibility/reporter.ts";

/** Prints the slowest files at the end of a run. */
export const SLOWEST_FILES = "./test/helpers/slowest-files.ts";

/**
 * `npm test` runs the first two projects, `npm run test:slow` the third. The setup stands outside: in a project it would
 * run once for each.
 */
export default defineConfig({
  test: {
    globalSetup,
    reporters: ["default", COMPATIBILITY, SLOWEST_FILES],
    teardownTimeout: 60_000,
    // Tests wait for most of their time. On two cores vitest would start one process.
    maxWorkers: Math.max(3, availableParallelism()),
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        plugins,
        test: {
          ...ordinary,
          name: "fast",
          include: ["test/**/*.test.ts"],
          exclude: [...ordinary.exclude, ...WITH_PROCESSES, ...THOROUGH, ...WITH_MODULES_REPLACED],
        },
      },
      { plugins, test: { ...ordinary, name: "replaced", include: WITH_MODULES_REPLACED, isolate: true } },
      {
        plugins,
        test: {
          ...ordinary,
          name: "slow",
          include: [...WITH_PROCESSES, ...THOROUGH],
          exclude: [...ordinary.exclude, ...CONSOLE_PAGES],
        },
      },
    ],
  },
});
