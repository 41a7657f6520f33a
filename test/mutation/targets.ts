/**
 * Which files are mutated, and which tests have to notice. Those that notice most, and soonest, come first; whoever
 * adds a file of tests about one of these sources adds it here.
 */
export interface Target {
  file: string;
  kind: "sql" | "code";
  /** Only the statements or functions with these names. */
  places?: readonly string[];
  tests: readonly string[];
}

const QUEUE = [
  "engine/queue",
  "engine/finishing",
  "engine/leases",
  "engine/slots",
  "engine/suspects",
  "engine/handing-back",
  "runs/record",
  "runs/rollback",
  "runs/concurrency",
  "runs/threadless",
  "runs/cancellation",
  "engine/passing-faults",
  "engine/strategies.property",
];

const CREATION = [
  "runs/repository",
  "runs/creation",
  "runs/search",
  "runs/configuration",
  "runs/concurrency",
  "runs/named-threads",
  "runs/rollback",
  "runs/threadless",
  "runs/record",
  "runs/starting",
  "runs/hot-updates",
  "runs/cancellation",
  "streaming/opening",
  "streaming/resuming",
  "threads/running",
  "threads/retention",
  "engine/strategies.property",
];

const STREAMS = [
  "streaming/run-channel",
  "streaming/run-reader",
  "streaming/log-reader",
  "streaming/hub",
  "streaming/event-log",
  "streaming/resuming",
  "streaming/opening",
  "streaming/coming-back",
  "streaming/large-events",
  "runs/threadless",
  "streaming/outages",
  "streaming/modes",
  "clients/reconnecting",
  "streaming/crowded",
  "http/streams",
  "engine/leases",
];

const EXECUTION = [
  "runs/waiting",
  "engine/slots",
  "engine/handing-back",
  "engine/finishing",
  "runs/record",
  "runs/cancellation",
  "runs/interrupts",
  "streaming/modes",
  "engine/suspects",
  "engine/hosting",
  "runs/concurrency",
  "runs/threadless",
  "runs/rollback",
  "streaming/resuming",
  "engine/leases",
  "engine/passing-faults",
];

const CHECKPOINTS = [
  "checkpoints/write-queue",
  "checkpoints/fences",
  "checkpoints/attempts",
  "checkpoints/difference",
  "threads/updates",
  "engine/finishing",
  "runs/starting",
  "threads/supersteps",
  "engine/leases",
  "runs/concurrency",
];

const code = (files: readonly string[], tests: readonly string[]): Target[] =>
  files.map((file) => ({ file: `src/${file}.ts`, kind: "code", tests }));

export const TARGETS: readonly Target[] = [
  { file: "src/engine/queue.ts", kind: "sql", tests: QUEUE },
  {
    file: "src/engine/claims.ts",
    kind: "sql",
    tests: [
      "engine/claiming",
      "engine/hosting",
      "engine/claims",
      "runs/record",
      "runs/concurrency",
      "engine/slots",
      "engine/suspects",
      "engine/strategies.property",
    ],
  },
  {
    file: "src/runs/behind.ts",
    kind: "sql",
    tests: ["engine/claiming", "runs/concurrency", "runs/cancelling-many", "engine/strategies.property"],
  },
  {
    file: "src/checkpoints/repository.ts",
    kind: "sql",
    places: ["HELD_BY_ATTEMPT", "HELD_WHILE_IDLE", "HELD_WHILE_UNCHANGED", "isHeld"],
    tests: CHECKPOINTS,
  },
  {
    file: "src/streaming/event-log.ts",
    kind: "sql",
    tests: ["streaming/event-log", "streaming/retention", "streaming/resuming", "streaming/coming-back"],
  },
  {
    file: "src/runs/forgetting.ts",
    kind: "sql",
    tests: ["runs/forgetting", "runs/rollback", "runs/configuration", "runs/concurrency"],
  },
  { file: "src/runs/repository.ts", kind: "sql", tests: CREATION },
  {
    file: "src/runs/cancellation.ts",
    kind: "sql",
    tests: [
      "runs/cancelling-waiting",
      "runs/cancellation",
      "runs/cancelling-many",
      "runs/rollback",
      "runs/concurrency",
      "runs/threadless",
    ],
  },
  ...code(["runs/multitask"], ["runs/multitask"]),
  ...code(["checkpoints/write-queue"], CHECKPOINTS),
  ...code(
    [
      "streaming/hub",
      "streaming/run-channel",
      "streaming/run-reader",
      "streaming/log-reader",
      "streaming/event-log",
    ],
    STREAMS,
  ),
  ...code(["engine/worker", "engine/attempt", "engine/outcomes"], EXECUTION),
  ...code(["engine/execution"], ["engine/execution", ...EXECUTION]),
  ...code(
    ["engine/recovery"],
    ["engine/recovery", "engine/lost-workers", "engine/leases", "engine/suspects"],
  ),
  ...code(["engine/heartbeat"], ["engine/renewals", "engine/heartbeats", "database/outages"]),
  { file: "src/engine/hosting.ts", kind: "sql", tests: ["engine/hosting"] },
];
