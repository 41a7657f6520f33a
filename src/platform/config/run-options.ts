import ipaddr from "ipaddr.js";
import { z } from "zod";
import {
  byGraph,
  BYTES_PER_MEGABYTE,
  commaSeparated,
  list,
  seconds,
  wholeNumber,
  type Options,
} from "./option.ts";

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
    description:
      "Heap of a graph process in megabytes. A process whose memory exceeds twice as much is replaced, and killed above " +
      "three times as much.",
  },
  runTimeoutSeconds: {
    environment: ["BG_JOB_TIMEOUT_SECS"],
    default: "3600",
    ...seconds(1, 604_800),
    description: "Seconds that a run may take.",
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
  leaseSeconds: {
    environment: ["LEASE_SECONDS"],
    default: "10",
    ...seconds(0.2, 3_600),
    description:
      "Seconds without a heartbeat after which a server counts as dead. Heartbeats, and searches for runs of dead servers, " +
      "are a fifth of this time apart.",
  },
  blockedLoopSeconds: {
    // The default depends on WORKERS and LEASE_SECONDS; see config.ts.
    environment: ["BLOCKED_LOOP_SECONDS"],
    ...seconds(0, 604_800),
    description:
      "Seconds of a blocked event loop after which the process counts as dead. 0: only the lease decides. Not set: 60, " +
      "or 15 with WORKERS, but at least LEASE_SECONDS.",
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

const RANGES = ["loopback", "linklocal", "uniquelocal"];
const isProxy = (text: string): boolean =>
  RANGES.includes(text) || ipaddr.isValid(text) || ipaddr.isValidCIDR(text);

export const LIMIT_OPTIONS = {
  requestsPerMinute: {
    environment: ["RATE_LIMIT_REQUESTS"],
    default: "3000",
    ...wholeNumber(0, 1_000_000_000),
    description:
      "Read requests a minute for each user or address; two fifths as many writes, a fifth as many searches and " +
      "streams. An API key, which stands for an application, has 20 times as many. 0: no limit.",
  },
  runsPerMinute: {
    environment: ["RATE_LIMIT_RUNS"],
    default: "600",
    ...wholeNumber(0, 1_000_000_000),
    description: "Runs a minute for each user or address. 0: no limit.",
  },
  runningRunsPerCaller: {
    environment: ["MAX_RUNNING_RUNS_PER_CALLER"],
    default: "0",
    ...wholeNumber(0, 1_000_000),
    description:
      "Running runs of a user on all servers; more wait. Set it alike on all servers. 0: no limit.",
  },
  runningRunsByGraph: {
    environment: ["MAX_RUNNING_RUNS_BY_GRAPH"],
    default: "",
    ...byGraph("runs", "agent=20,research=2", 1, 1_000_000),
    description: "Running runs of a graph on all servers: agent=20,research=2. Set it alike on all servers.",
  },
  streamsPerCaller: {
    environment: ["STREAMS_PER_CALLER"],
    default: "100",
    ...wholeNumber(0, 1_000_000),
    description:
      "Open streams, WebSockets, their subscriptions and waiting requests of a user or an address. 0: no limit.",
  },
  trustedProxies: {
    environment: ["TRUSTED_PROXIES"],
    default: "",
    expected:
      "a list of addresses or networks (10.0.0.0/8) separated by commas, or loopback, linklocal, uniquelocal",
    schema: z
      .string()
      .refine((text) => list(text).every(isProxy))
      .pipe(commaSeparated.schema),
    description:
      "Proxies whose X-Forwarded-For is trusted: addresses, networks (10.0.0.0/8), loopback, linklocal or uniquelocal, " +
      "separated by commas.",
  },
  keepAliveSeconds: {
    environment: ["KEEP_ALIVE_SECONDS"],
    default: "72", // longer than a load balancer's 60 s, or it sends into a closed connection
    ...seconds(1, 3_600),
    description: "Seconds that an idle connection stays open between two requests.",
  },
} satisfies Options;

/** Bounds that nobody sets. Tests do. */
export const CONSTANTS = {
  accessCheckSeconds: 60,
  bodyElementsAtMost: 250_000,
  connectionsAtMost: 15_000,
  cronsPerCaller: 100,
  eventCharactersAtMost: 64_000_000,
  failedLoginsPerMinute: 600,
  graphProcessRuns: 10_000,
  headersTimeoutSeconds: 20,
  /** An API key, which stands for an application, has this many times the limits of a user. */
  keyFactor: 20,
  listenBacklog: 4_096, // Linux's bound since 5.4; with Node's 511 the kernel refused 304 to 444 of 2,000 connections
  pendingRunsPerCaller: 1_000,
  pendingRunsPerThread: 100,
  // The largest agents in use need this many steps. Each step stores a checkpoint.
  recursionLimitMax: 10_000,
  requestTimeoutSeconds: 60,
  stateValueCharactersAtMost: 64_000_000,
  streamsAtMost: 10_000,
  traceRetentionSeconds: 604_800,
  // 400 days: a year can be compared with the year before it.
  usageRetentionSeconds: 34_560_000,
  webhookRetentionSeconds: 604_800,
};

export const derivedFrom = (given: {
  requestsPerMinute: number;
  graphProcessHeapMegabytes: number;
  leaseSeconds: number;
}) => ({
  readsPerMinute: given.requestsPerMinute,
  searchesPerMinute: Math.ceil(given.requestsPerMinute / 5),
  writesPerMinute: Math.ceil(given.requestsPerMinute * 0.4),
  streamsPerMinute: Math.ceil(given.requestsPerMinute / 5),
  graphProcessResidentBytes: 2 * given.graphProcessHeapMegabytes * BYTES_PER_MEGABYTE,
  heartbeatSeconds: given.leaseSeconds / 5,
  sweepSeconds: given.leaseSeconds / 5,
});
