import { z } from "zod";
import { byGraph, BYTES_PER_MEGABYTE, seconds, wholeNumber, type Option } from "./option.ts";

/** How runs are executed: how many, where, for how long, and what becomes of them when a process dies. */
export interface ExecutionConfig {
  /** Runs that this process executes at the same time. */
  readonly jobsPerWorker: number;
  /** Processes that execute graphs; 0: the server's own does, `auto`: one per core but one. */
  readonly graphProcesses: number | "auto";
  /** Megabytes of V8's heap of each of them. */
  readonly graphProcessHeapMegabytes: number;
  /** Runs after which one of them is replaced. */
  readonly graphProcessRuns: number;
  /** Resident bytes above which one of them is replaced. */
  readonly graphProcessResidentBytes: number;
  /** Seconds after which an attempt ends as `timeout`. */
  readonly runTimeoutSeconds: number;
  /** The same for the runs of some graphs, by the graph's id. */
  readonly runTimeoutSecondsByGraph: ReadonlyMap<string, number>;
  /** Steps that a run may ask for at most. */
  readonly recursionLimitMax: number;
  /** Seconds that running runs are given to finish on shutdown, before they are handed to another worker. */
  readonly shutdownGraceSeconds: number;
  /** Seconds that the events of an ended run can still be replayed. */
  readonly eventRetentionSeconds: number;
  /** Seconds after which a worker that doesn't renew its lease counts as dead. */
  readonly leaseSeconds: number;
  readonly heartbeatSeconds: number;
  /** Seconds of a standing event loop for which leases are renewed all the same; 0: no thread does that. */
  readonly blockedLoopSeconds: number;
  /** Seconds between two looks for runs whose lease has expired. */
  readonly sweepSeconds: number;
  /** Attempts after which a run whose workers died each time ends as `error`. */
  readonly maxAttempts: number;
}

/** More than any machine of this size has cores; each takes some 100 MB. */
const GRAPH_PROCESSES_AT_MOST = 64;

export const EXECUTION_OPTIONS: { readonly [Key in keyof ExecutionConfig]: Option<ExecutionConfig[Key]> } = {
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
      "Memory in megabytes above which a graph process is replaced. With WORKER_HEAP_MB more, it is killed.",
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
    // What the largest agents in use ask for; each step is a checkpoint that is stored.
    default: "10000",
    ...wholeNumber(1, 2_147_483_647),
    description: "Highest recursion_limit (steps of a run).",
  },
  shutdownGraceSeconds: {
    environment: ["BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS"],
    // Docker kills ten seconds after it asked; the hosted service's default (180) would never be reached there.
    default: "8",
    ...seconds(0, 3_600),
    description: "Seconds that runs have to finish on shutdown. Another worker continues the rest.",
  },
  eventRetentionSeconds: {
    environment: ["RESUMABLE_STREAM_TTL_SECONDS"],
    // The hosted service keeps them in memory, for 120 s. Here they are on disk, and a laptop may sleep an hour.
    default: "3600",
    ...seconds(1, 2_592_000),
    description: "Seconds for which events of an ended run can be replayed.",
  },
  leaseSeconds: {
    environment: ["LEASE_SECONDS"],
    default: "10",
    ...seconds(0.2, 3_600),
    description: "Seconds without a heartbeat after which a worker counts as dead.",
  },
  heartbeatSeconds: {
    environment: ["HEARTBEAT_SECONDS"],
    default: "2",
    ...seconds(0.05, 600),
    description: "Seconds between two heartbeats. Must be less than half of LEASE_SECONDS.",
  },
  blockedLoopSeconds: {
    // What it is if it is not set depends on WORKERS; see config.ts.
    environment: ["BLOCKED_LOOP_SECONDS"],
    ...seconds(0, 604_800),
    description:
      "Seconds of a blocked event loop after which the process counts as dead. 0: only the lease decides. Not set: 60, " +
      "or with WORKERS the larger of 15 and LEASE_SECONDS.",
  },
  sweepSeconds: {
    environment: ["SWEEP_SECONDS"],
    default: "2",
    ...seconds(0.05, 600),
    description: "Seconds between two searches for runs of dead workers.",
  },
  maxAttempts: {
    // The hosted service's counts attempts, too, whatever its name says.
    environment: ["MAX_ATTEMPTS", "BG_JOB_MAX_RETRIES"],
    default: "3",
    ...wholeNumber(1, 100),
    description: "Attempts of a run whose workers die. After the last, the run ends as an error.",
  },
};
