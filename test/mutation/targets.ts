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
  "queue/queue",
  "queue/finishing",
  "queue/ending",
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
  "queue/statements",
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
  "events/opening",
  "events/resuming",
  "threads/running",
  "threads/retention",
  "engine/strategies.property",
];

const STREAMS = [
  "events/run-channel",
  "events/run-reader",
  "events/log-reader",
  "events/hub",
  "events/event-log",
  "events/resuming",
  "events/opening",
  "events/coming-back",
  "events/large-events",
  "runs/threadless",
  "events/outages",
  "events/modes",
  "clients/reconnecting",
  "events/crowded",
  "http/streams",
  "engine/leases",
];

const EXECUTION = [
  "runs/waiting",
  "engine/slots",
  "engine/handing-back",
  "queue/finishing",
  "runs/record",
  "runs/cancellation",
  "runs/interrupts",
  "events/modes",
  "engine/suspects",
  "queue/hosting",
  "runs/concurrency",
  "runs/threadless",
  "runs/rollback",
  "events/resuming",
  "engine/leases",
  "engine/passing-faults",
];

const CHECKPOINTS = [
  "checkpoints/write-queue",
  "checkpoints/fences",
  "checkpoints/attempts",
  "checkpoints/difference",
  "threads/updates",
  "queue/finishing",
  "runs/starting",
  "threads/supersteps",
  "engine/leases",
  "runs/concurrency",
];

const CLAIMS = [
  "queue/claiming",
  "queue/hosting",
  "queue/claims",
  "runs/record",
  "runs/concurrency",
  "runs/cancelling-many",
  "engine/slots",
  "engine/suspects",
  "engine/strategies.property",
];

const CANCELLATION = [
  "runs/cancelling-waiting",
  "runs/cancellation",
  "runs/cancelling-many",
  "queue/statements",
  "queue/queue",
  "runs/rollback",
  "runs/concurrency",
  "runs/threadless",
];

/** Statements of the queue. */
const sql = (names: readonly string[], tests: readonly string[]): Target[] =>
  names.map((name) => ({ file: `src/engine/queue/sql/${name}.ts`, kind: "sql", tests }));

const code = (files: readonly string[], tests: readonly string[]): Target[] =>
  files.map((file) => ({ file: `src/${file}.ts`, kind: "code", tests }));

export const TARGETS: readonly Target[] = [
  ...sql(
    ["finish", "renew", "hand-back", "give-up-lease", "lock-attempt", "silence", "requeue", "list-abandoned"],
    QUEUE,
  ),
  ...sql(["give-up-attempt"], ["queue/giving-up", ...QUEUE]),
  ...sql(["list-unknown", "list-ended-threadless", "ended-as", "assert-writable"], QUEUE),
  ...sql(["claim", "claim-suspects", "next-of-thread", "put-behind", "advance", "advance-forgotten"], CLAIMS),
  {
    file: "src/state/checkpoints/write/fences.ts",
    kind: "sql",
    places: ["HELD_BY_ATTEMPT", "HELD_WHILE_IDLE", "HELD_WHILE_UNCHANGED", "isHeld"],
    tests: CHECKPOINTS,
  },
  {
    file: "src/engine/events/log.ts",
    kind: "sql",
    tests: ["events/event-log", "events/retention", "events/resuming", "events/coming-back"],
  },
  ...sql(
    ["forget"],
    ["queue/ending", "runs/forgetting", "runs/rollback", "runs/configuration", "runs/concurrency"],
  ),
  ...sql(["create", "create-on-idle-thread", "create-with-thread", "create-behind-others"], CREATION),
  ...sql(["lock-threads", "lock-unfinished", "announce-reader", "remove-ended"], CREATION),
  { file: "src/api/runs/repository.ts", kind: "sql", tests: CREATION },
  ...sql(["delete-threads"], ["queue/ending", "threads/deletion", "runs/threadless"]),
  ...code(["queue/ending"], ["queue/ending", ...CANCELLATION]),
  ...sql(["ask-to-cancel", "end-waiting", "release", "list-unfinished"], CANCELLATION),
  ...code(["runs/creation/multitask"], ["runs/multitask"]),
  ...code(["checkpoints/write/write-queue"], CHECKPOINTS),
  ...code(
    [
      "events/hub",
      "events/held-channels",
      "events/run-watchers",
      "events/channel",
      "events/readers/run-reader",
      "events/readers/channel-reader",
      "events/readers/log-reader",
      "events/log",
    ],
    STREAMS,
  ),
  ...code(
    ["engine/executors/inline", "engine/executors/hearing"],
    [...EXECUTION, "runs/strict-resume", "engine/executors/host"],
  ),
  ...code(
    [
      "engine/executors/process/pool",
      "engine/executors/process/members",
      "engine/executors/process/placing",
      "engine/executors/process/doubts",
    ],
    [
      "engine/executors/pool",
      "engine/executors/restarts",
      "engine/executors/spare",
      "engine/executors/deaths",
    ],
  ),
  ...code(["engine/attempt/outcomes"], ["engine/outcomes", ...EXECUTION]),
  ...code(["engine/attempt/execution", "engine/attempt/conclusion"], ["engine/execution", ...EXECUTION]),
  ...code(
    [
      "engine/worker/worker",
      "engine/worker/claims",
      "engine/worker/runs-in-hand",
      "engine/worker/adoption",
      "engine/worker/waiters-elsewhere",
      "engine/worker/closing",
    ],
    ["engine/worker", ...EXECUTION],
  ),
  ...code(
    ["engine/recovery"],
    ["engine/recovery", "engine/lost-workers", "engine/leases", "engine/suspects"],
  ),
  ...code(
    ["engine/lease/heartbeat", "engine/lease/loop-renewals", "engine/lease/watched-thread"],
    ["engine/renewals", "engine/heartbeats", "database/outages"],
  ),
  { file: "src/engine/queue/hosting.ts", kind: "sql", tests: ["queue/unhosted", "queue/hosting"] },
];
