/**
 * The mutated files, and the tests that have to notice. The tests that notice most, and soonest, come first. Add a new test file for one of
 * these sources here.
 */
export interface Target {
  file: string;
  kind: "sql" | "code";
  /** Only the statements or functions with these names. */
  places?: readonly string[];
  tests: readonly string[];
}

const QUEUE = [
  "engine/queue/queue",
  "engine/queue/finishing",
  "engine/queue/ending",
  "engine/leases",
  "engine/slots",
  "engine/alone",
  "engine/handing-back",
  "api/runs/record",
  "api/runs/rollback",
  "api/runs/concurrency",
  "api/runs/threadless",
  "api/runs/cancellation",
  "engine/passing-faults",
  "engine/strategies.property",
];

const CREATION = [
  "engine/queue/statements",
  "api/runs/creation",
  "api/runs/search",
  "api/runs/configuration",
  "api/runs/concurrency",
  "api/runs/named-threads",
  "api/runs/rollback",
  "api/runs/threadless",
  "api/runs/record",
  "api/runs/starting",
  "api/runs/hot-updates",
  "api/runs/cancellation",
  "engine/events/opening",
  "engine/events/resuming",
  "api/threads/running",
  "api/threads/retention",
  "engine/strategies.property",
];

const STREAMS = [
  "engine/events/run-channel",
  "engine/events/run-reader",
  "engine/events/log-reader",
  "engine/events/hub",
  "engine/events/event-log",
  "engine/events/resuming",
  "engine/events/opening",
  "engine/events/coming-back",
  "engine/events/large-events",
  "api/runs/threadless",
  "engine/events/outages",
  "engine/events/modes",
  "clients/reconnecting",
  "engine/events/crowded",
  "http/streams",
  "engine/leases",
];

const EXECUTION = [
  "api/runs/waiting",
  "engine/slots",
  "engine/handing-back",
  "engine/queue/finishing",
  "api/runs/record",
  "api/runs/cancellation",
  "api/runs/interrupts",
  "engine/events/modes",
  "engine/alone",
  "engine/queue/hosting",
  "api/runs/concurrency",
  "api/runs/threadless",
  "api/runs/rollback",
  "engine/events/resuming",
  "engine/leases",
  "engine/passing-faults",
];

const CHECKPOINTS = [
  "state/checkpoints/write-queue",
  "state/checkpoints/fences",
  "state/checkpoints/attempts",
  "state/checkpoints/difference",
  "api/threads/updates",
  "engine/queue/finishing",
  "api/runs/starting",
  "api/threads/supersteps",
  "engine/leases",
  "api/runs/concurrency",
];

const CLAIMS = [
  "engine/queue/claiming",
  "engine/queue/hosting",
  "engine/queue/claims",
  "api/runs/record",
  "api/runs/concurrency",
  "api/runs/cancelling-many",
  "engine/slots",
  "engine/alone",
  "engine/strategies.property",
];

const CANCELLATION = [
  "api/runs/cancelling-waiting",
  "api/runs/cancellation",
  "api/runs/cancelling-many",
  "engine/queue/statements",
  "engine/queue/queue",
  "api/runs/rollback",
  "api/runs/concurrency",
  "api/runs/threadless",
];

/** Statements of the queue. */
const sql = (names: readonly string[], tests: readonly string[]): Target[] =>
  names.map((name) => ({ file: `src/engine/queue/sql/${name}.ts`, kind: "sql", tests }));

const code = (files: readonly string[], tests: readonly string[]): Target[] =>
  files.map((file) => ({ file: `src/${file}.ts`, kind: "code", tests }));

export const TARGETS: readonly Target[] = [
  ...sql(["finish", "renew", "lock-attempt", "missed-heartbeats", "requeue", "list-abandoned"], QUEUE),
  ...sql(["requeue-attempt"], ["engine/queue/giving-up", ...QUEUE]),
  ...sql(["list-unknown", "list-ended-threadless", "ended-as", "assert-writable"], QUEUE),
  ...sql(["claim", "next-of-thread", "advance"], CLAIMS),
  {
    file: "src/state/checkpoints/fences.ts",
    kind: "sql",
    places: ["HELD_BY_ATTEMPT", "HELD_BY_ATTEMPTS", "HELD_WHILE_IDLE", "HELD_WHILE_UNCHANGED", "isHeld"],
    tests: CHECKPOINTS,
  },
  {
    file: "src/engine/events/log.ts",
    kind: "sql",
    tests: [
      "engine/events/event-log",
      "engine/events/retention",
      "engine/events/resuming",
      "engine/events/coming-back",
    ],
  },
  ...sql(
    ["forget"],
    [
      "engine/queue/ending",
      "api/runs/forgetting",
      "api/runs/rollback",
      "api/runs/configuration",
      "api/runs/concurrency",
    ],
  ),
  ...sql(["create"], CREATION),
  ...sql(["lock-threads", "lock-unfinished", "announce-reader", "remove-ended"], CREATION),
  { file: "src/api/runs/repository.ts", kind: "sql", tests: CREATION },
  ...sql(["delete-threads"], ["engine/queue/ending", "api/threads/deletion", "api/runs/threadless"]),
  ...code(["engine/queue/ending"], ["engine/queue/ending", ...CANCELLATION]),
  ...sql(["ask-to-cancel", "end-waiting", "release", "list-unfinished"], CANCELLATION),
  ...code(["state/checkpoints/queue", "state/checkpoints/lists"], CHECKPOINTS),
  ...code(
    ["engine/events/hub", "engine/events/channel", "engine/events/readers/log-reader", "engine/events/log"],
    STREAMS,
  ),
  ...code(
    ["engine/executors/inline", "engine/executors/event-intake"],
    [...EXECUTION, "api/runs/strict-resume", "engine/executors/host"],
  ),
  ...code(
    ["engine/executors/process/pool"],
    ["engine/executors/pool", "engine/executors/spare", "engine/executors/deaths"],
  ),
  ...code(["engine/attempt/outcomes"], ["engine/outcomes", ...EXECUTION]),
  ...code(["engine/attempt/execution", "engine/attempt/conclusion"], ["engine/execution", ...EXECUTION]),
  ...code(
    ["engine/worker/worker", "engine/worker/claims", "engine/worker/runs-in-hand"],
    ["engine/worker", ...EXECUTION],
  ),
  ...code(["engine/recovery"], ["engine/recovery", "engine/lost-workers", "engine/leases", "engine/alone"]),
  ...code(
    ["engine/lease/heartbeat", "engine/lease/loop-renewals", "engine/lease/watched-thread"],
    ["engine/renewals", "engine/heartbeats", "platform/database/outages"],
  ),
  {
    file: "src/engine/queue/hosting.ts",
    kind: "sql",
    tests: ["engine/queue/unhosted", "engine/queue/hosting"],
  },
];
