import { z } from "zod";
import { byGraph, BYTES_PER_MEGABYTE, flag, seconds, wholeNumber, type Options } from "./option.ts";

/** More than a machine has cores. Each process takes about 100 MB. */
const GRAPH_PROCESSES_AT_MOST = 64;

export const EXECUTION_OPTIONS = {
  jobsPerWorker: {
    environment: ["N_JOBS_PER_WORKER"],
    default: "10",
    ...wholeNumber(1, 1_000),
    description: "Runs that this process executes at the same time.",
  },
  graphProcesses: {
    flag: "workers",
    environment: ["WORKERS"],
    default: "0",
    expected: "auto, or a whole number from 0 to 64",
    schema: z
      .string()
      .pipe(
        z.union([z.literal("auto"), z.coerce.number<string>().int().min(0).max(GRAPH_PROCESSES_AT_MOST)]),
      ),
    description:
      "Graph processes, which execute graphs outside the server's process. 0: the server's process executes them. auto: " +
      "one less than the cores, at least one.",
  },
  graphProcessHeapMegabytes: {
    environment: ["WORKER_HEAP_MB"],
    default: "512",
    ...wholeNumber(64, 1_000_000),
    description: "Heap of a graph process in megabytes.",
  },
  graphProcessRuns: {
    environment: ["WORKER_RUNS"],
    default: "10000",
    ...wholeNumber(1, 1_000_000_000),
    description: "Runs after which a graph process is replaced.",
  },
  graphProcessResidentBytes: {
    environment: ["WORKER_MEMORY_MB"],
    default: "1000",
    expected: "a number of megabytes from 100 to 1000000",
    schema: z
      .string()
      .pipe(z.coerce.number<string>().min(100).max(1_000_000))
      .transform((megabytes) => Math.round(megabytes * BYTES_PER_MEGABYTE)),
    description:
      "Memory in megabytes above which a graph process is replaced. A process that exceeds this by WORKER_HEAP_MB " +
      "is killed.",
  },
  runTimeoutSeconds: {
    environment: ["BG_JOB_TIMEOUT_SECS"],
    default: "3600",
    ...seconds(1, 604_800),
    description: "Seconds that a run may take.",
  },
  runTimeoutSecondsByGraph: {
    environment: ["RUN_TIMEOUT_BY_GRAPH"],
    default: "",
    ...byGraph("seconds", "agent=600,research=7200", 1, 604_800),
    description: "The same by graph: agent=600,research=7200.",
  },
  recursionLimitMax: {
    environment: ["RECURSION_LIMIT_MAX"],
    // The largest agents in use need this many steps. Each step stores a checkpoint.
    default: "10000",
    ...wholeNumber(1, 2_147_483_647),
    description: "Highest recursion_limit (steps of a run).",
  },
  shutdownGraceSeconds: {
    environment: ["BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS"],
    // Docker kills a container 10 s after the stop signal. The hosted service's default is 180 s.
    default: "8",
    ...seconds(0, 3_600),
    description: "Seconds that runs have to finish on shutdown. Another server continues the rest.",
  },
  eventRetentionSeconds: {
    environment: ["RESUMABLE_STREAM_TTL_SECONDS"],
    // The hosted service keeps events in memory for 120 s. Here they are on disk.
    default: "3600",
    ...seconds(1, 2_592_000),
    description: "Seconds for which events of an ended run can be replayed.",
  },
  traces: {
    environment: ["TRACES"],
    default: "all",
    expected: "all, errors or off",
    schema: z.enum(["all", "errors", "off"]),
    description:
      "Which runs' traces are stored. errors: of runs that end with an error or a time-out. off: none; tokens are counted all the same.",
  },
  telemetryContents: {
    environment: ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"],
    default: "false",
    ...flag,
    description:
      "Spans of OpenTelemetry also hold what users say: messages, arguments and results of tools, messages of errors.",
  },
  traceRetentionSeconds: {
    environment: ["TRACE_RETENTION_SECONDS"],
    default: "604800",
    ...seconds(1, 315_360_000),
    description: "Seconds for which traces of runs are kept.",
  },
  usageRetentionSeconds: {
    environment: ["USAGE_RETENTION_SECONDS"],
    // 400 days: a year can be compared with the year before it.
    default: "34560000",
    ...seconds(86_400, 315_360_000),
    description: "Seconds for which the tokens of models are kept, also of deleted runs.",
  },
  leaseSeconds: {
    environment: ["LEASE_SECONDS"],
    default: "10",
    ...seconds(0.2, 3_600),
    description: "Seconds without a heartbeat after which a server counts as dead.",
  },
  heartbeatSeconds: {
    environment: ["HEARTBEAT_SECONDS"],
    default: "2",
    ...seconds(0.05, 600),
    description: "Seconds between two heartbeats. Must be less than half of LEASE_SECONDS.",
  },
  blockedLoopSeconds: {
    // The default depends on WORKERS and LEASE_SECONDS; see config.ts.
    environment: ["BLOCKED_LOOP_SECONDS"],
    ...seconds(0, 604_800),
    description:
      "Seconds of a blocked event loop after which the process counts as dead. 0: only the lease decides. Not set: 60, " +
      "or 15 with WORKERS, but at least LEASE_SECONDS.",
  },
  sweepSeconds: {
    environment: ["SWEEP_SECONDS"],
    default: "2",
    ...seconds(0.05, 600),
    description: "Seconds between two searches for runs of dead servers.",
  },
  maxAttempts: {
    // BG_JOB_MAX_RETRIES of the hosted service also counts attempts, despite its name.
    environment: ["MAX_ATTEMPTS", "BG_JOB_MAX_RETRIES"],
    default: "3",
    ...wholeNumber(1, 100),
    description:
      "Attempts of a run whose servers or graph processes die. After the last, the run ends as an error.",
  },
} satisfies Options;
