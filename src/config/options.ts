import { z } from "zod";
import { storableConfig } from "../domain/json-schemas.ts";
import type { JsonObject } from "../lib/json.ts";
import { commaSeparated, flag, oneOf, seconds, text, wholeNumber, type Option } from "./option.ts";
import { DATABASE_OPTIONS, type DatabaseConfig } from "./database-options.ts";

/** The configuration of a server: read-only, complete, every value checked. */
export interface Config extends DatabaseConfig {
  /** Path of langgraph.json, as given. */
  readonly graphConfigFile: string;
  /** Graph id -> the config that the graph's own assistant is made with. */
  readonly assistantConfigs: Readonly<Record<string, JsonObject>>;
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Folder of the embedded PostgreSQL, as given; unused when there is a `databaseUrl`. */
  readonly dataFolder: string;
  /** `api` answers requests, `worker` executes runs, `all` does both. */
  readonly role: "all" | "api" | "worker";
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
  /** Empty: everything is open. */
  readonly apiKeys: readonly string[];
  readonly unsafeNoAuth: boolean;
  /** Starts although `auth` of langgraph.json, which has no effect here yet, names who may do what. */
  readonly unsafeIgnoreAuth: boolean;
  readonly logLevel: "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";
  readonly logFormat: "pretty" | "json";
  /** Origins whose pages may call the API; `*` is all, `loopback` every one on this machine. */
  readonly corsAllowOrigins: readonly string[];
  /** Names by which this server is called, beside those of loopback; `.example` is every one below it, `*` any. */
  readonly allowedHosts: readonly string[];
  readonly bodyLimitBytes: number;
  /** Items of lists and members of objects that a request's body may have. */
  readonly bodyElementsAtMost: number;
  /** Seconds after which an attempt ends as `timeout`. */
  readonly runTimeoutSeconds: number;
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

const isJson = (value: string): boolean => value.trimStart().startsWith("{");

const BYTES_PER_MEGABYTE = 1_000_000;
/** More than any machine of this size has cores; each takes some 100 MB. */
const GRAPH_PROCESSES_AT_MOST = 64;
const PYTHON_LEVELS = new Map([
  ["warning", "warn"],
  ["critical", "fatal"],
]);

export const OPTIONS: { readonly [Key in keyof Config]: Option<Config[Key]> } = {
  graphConfigFile: {
    flag: "config",
    environment: ["LANGGRAPH_CONFIG"],
    translations: {
      LANGGRAPH_CONFIG: { expected: "a path", translate: (value) => (isJson(value) ? undefined : value) },
    },
    default: "langgraph.json",
    ...text("a path"),
    description: "The file that names the graphs.",
  },
  assistantConfigs: {
    // The dev server's meaning of that name. No path begins like an object.
    environment: ["LANGGRAPH_CONFIG"],
    translations: {
      LANGGRAPH_CONFIG: {
        expected: 'a path, or JSON like {"agent": {"recursion_limit": 50}}',
        translate: (value) => (isJson(value) ? value : undefined),
      },
    },
    default: "{}",
    expected: "JSON",
    schema: z
      .string()
      .transform((json, context): unknown => {
        try {
          return JSON.parse(json);
        } catch (error) {
          context.addIssue({ code: "custom", message: (error as Error).message });
          return z.NEVER;
        }
      })
      .pipe(z.record(z.string(), storableConfig)),
    description: "As JSON: the config that each graph's own assistant is made with, by graph id.",
  },
  host: {
    flag: "host",
    environment: ["HOST"],
    default: "127.0.0.1",
    ...text("an address"),
    description: "Address to listen on. Anything but loopback needs API keys.",
  },
  port: {
    flag: "port",
    environment: ["PORT"],
    default: "8123",
    ...wholeNumber(0, 65_535),
    description: "Port to listen on; 0 takes a free one.",
  },
  dataFolder: {
    flag: "data",
    environment: ["THREADLOOM_DATA"],
    default: ".threadloom",
    ...text("a path"),
    description: "Folder of the embedded PostgreSQL, when DATABASE_URL is not set.",
  },
  role: {
    flag: "role",
    environment: ["ROLE"],
    default: "all",
    ...oneOf(["all", "api", "worker"]),
    description: "all; api answers requests only; worker executes runs only.",
  },
  unsafeNoAuth: {
    flag: "unsafe-no-auth",
    switch: true,
    environment: ["UNSAFE_NO_AUTH"],
    default: "false",
    ...flag,
    description: "Listen beyond loopback without API keys: something in front checks access.",
  },
  unsafeIgnoreAuth: {
    flag: "unsafe-ignore-auth",
    switch: true,
    environment: ["UNSAFE_IGNORE_AUTH"],
    default: "false",
    ...flag,
    description: "Start though auth in langgraph.json has no effect yet: something in front checks access.",
  },
  apiKeys: {
    environment: ["API_KEYS"],
    default: "",
    secret: true,
    ...commaSeparated,
    description:
      "Keys that callers send as X-Api-Key, separated by commas. None: open to whoever can connect.",
  },
  ...DATABASE_OPTIONS,
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
      "Processes in which graphs are executed; 0: in the server's own; auto: one per core but one, at least one.",
  },
  graphProcessHeapMegabytes: {
    environment: ["WORKER_HEAP_MB"],
    default: "512",
    ...wholeNumber(64, 1_000_000),
    description: "With WORKERS: megabytes of heap that such a process may fill before it ends.",
  },
  graphProcessRuns: {
    environment: ["WORKER_RUNS"],
    default: "10000",
    ...wholeNumber(1, 1_000_000_000),
    description: "With WORKERS: runs after which such a process is replaced.",
  },
  graphProcessResidentBytes: {
    environment: ["WORKER_MEMORY_MB"],
    default: "1000",
    expected: "a number of megabytes from 100 to 1000000",
    schema: z
      .string()
      .pipe(z.coerce.number<string>().min(100).max(1_000_000))
      .transform((megabytes) => Math.round(megabytes * BYTES_PER_MEGABYTE)),
    description: "With WORKERS: megabytes of memory above which such a process is replaced.",
  },
  runTimeoutSeconds: {
    environment: ["BG_JOB_TIMEOUT_SECS"],
    default: "3600",
    ...seconds(1, 604_800),
    description: "Seconds that a run may take.",
  },
  recursionLimitMax: {
    environment: ["RECURSION_LIMIT_MAX"],
    // What the largest agents in use ask for; each step is a checkpoint that is stored.
    default: "10000",
    ...wholeNumber(1, 2_147_483_647),
    description: "The highest recursion_limit (steps of a run) that is accepted.",
  },
  shutdownGraceSeconds: {
    environment: ["BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS"],
    // Docker kills ten seconds after it asked; the hosted service's default (180) would never be reached there.
    default: "8",
    ...seconds(0, 3_600),
    description: "Seconds that runs are given to finish on shutdown; then another worker continues them.",
  },
  eventRetentionSeconds: {
    environment: ["RESUMABLE_STREAM_TTL_SECONDS"],
    // The hosted service keeps them in memory, for 120 s. Here they are on disk, and a laptop may sleep an hour.
    default: "3600",
    ...seconds(1, 2_592_000),
    description: "Seconds that the events of an ended run can be replayed.",
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
    description: "Seconds between two heartbeats; less than half of LEASE_SECONDS.",
  },
  blockedLoopSeconds: {
    environment: ["BLOCKED_LOOP_SECONDS"],
    default: "60",
    ...seconds(0, 604_800),
    description:
      "Seconds that a node may block the event loop before its process counts as dead; 0: only the lease.",
  },
  sweepSeconds: {
    environment: ["SWEEP_SECONDS"],
    default: "2",
    ...seconds(0.05, 600),
    description: "Seconds between two looks for runs of dead workers.",
  },
  maxAttempts: {
    // The hosted service's counts attempts, too, whatever its name says.
    environment: ["MAX_ATTEMPTS", "BG_JOB_MAX_RETRIES"],
    default: "3",
    ...wholeNumber(1, 100),
    description: "Attempts after which a run whose workers died each time ends as an error.",
  },
  corsAllowOrigins: {
    environment: ["CORS_ALLOW_ORIGINS"],
    default: "", // depends on whether there are keys; see parseConfig
    ...commaSeparated,
    description:
      "Origins whose pages may call the API, separated by commas; * is all, loopback all on this machine. " +
      "Not set: * with API keys, loopback without.",
  },
  allowedHosts: {
    environment: ["ALLOWED_HOSTS"],
    default: "",
    ...commaSeparated,
    description:
      "Without API keys: names by which this server may be called beside loopback's, separated by commas; " +
      ".example.com is all below it, * any.",
  },
  bodyLimitBytes: {
    environment: ["BODY_LIMIT_MB", "HTTP_MAX_REQUEST_BODY_BYTES"],
    translations: {
      HTTP_MAX_REQUEST_BODY_BYTES: {
        expected: "a number of bytes from 1000 to 200000000",
        translate: (bytes) => String(Number(bytes) / BYTES_PER_MEGABYTE),
      },
    },
    default: "16",
    expected: "a number of megabytes from 0.001 to 200", // a jsonb value may have 256 MB
    schema: z
      .string()
      .pipe(z.coerce.number<string>().min(0.001).max(200))
      .transform((megabytes) => Math.round(megabytes * BYTES_PER_MEGABYTE)),
    description:
      "Megabytes that a request's body may have; large ones may take four times as much at the same time.",
  },
  bodyElementsAtMost: {
    environment: ["BODY_ELEMENTS"],
    default: "250000",
    ...wholeNumber(1_000, 10_000_000),
    description: "Items of lists and members of objects that a request's body may have, all levels together.",
  },
  logLevel: {
    environment: ["LOG_LEVEL"],
    default: "info",
    ...oneOf(["trace", "debug", "info", "warn", "error", "fatal", "silent"]),
    // Python's names, in capitals, are what the hosted service takes.
    schema: z
      .string()
      .transform((level) => PYTHON_LEVELS.get(level.toLowerCase()) ?? level.toLowerCase())
      .pipe(z.enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"])),
    description: "The least severe log lines that are written.",
  },
  logFormat: {
    environment: ["LOG_FORMAT", "LOG_JSON"],
    translations: {
      LOG_JSON: {
        expected: "true or false",
        translate: (json) => ({ true: "json", false: "pretty" })[json.toLowerCase()] ?? json,
      },
    },
    ...oneOf(["pretty", "json"]),
    description: "pretty or json. Not set: pretty on a terminal, otherwise json.",
  },
};
