import { describe, expect, test } from "vitest";
import { assertMayListen, type Config, isExposed, parseConfig } from "../../../src/platform/config/config.ts";
import { mergeEnvironments } from "../../../src/platform/config/resolve.ts";
import { flagsIn } from "../../helpers/flags.ts";

const KEY = "0123456789abcdef0123456789abcdef";

const parse = (argv: string[] = [], environment: Record<string, string> = {}, terminal = false) =>
  parseConfig(flagsIn(argv), environment, { terminal });

describe("values", () => {
  test("every option has a valid default", () => {
    expect(parse()).toMatchObject({
      graphConfigFile: "langgraph.json",
      host: "127.0.0.1",
      port: 8123,
      dataFolder: ".threadloom",
      role: "all",
      databaseUrl: undefined,
      databasePoolSize: 20,
      databasePreparedStatements: true,
      jobsPerWorker: 10,
      apiKeys: [],
      corsAllowOrigins: [],
      sourceSchemas: true,
      allowedHosts: [],
      bodyLimitBytes: 16_000_000,
      bodyElementsAtMost: 250_000,
      leaseSeconds: 10,
      heartbeatSeconds: 2,
      blockedLoopSeconds: 60,
      sweepSeconds: 2,
      maxAttempts: 3,
    });
  });

  test("flags override the environment", () => {
    expect(parse(["--port", "9000"], { PORT: "9001" }).port).toBe(9000);
    expect(parse(["--port=9000"], { PORT: "9001" }).port).toBe(9000);
    expect(parse([], { PORT: "9001" }).port).toBe(9001);
  });

  test("an empty variable counts as not set", () => {
    expect(parse([], { PORT: "", API_KEYS: "" })).toMatchObject({ port: 8123, apiKeys: [] });
  });

  test("of several environments the last that sets a variable wins, and an empty variable counts as not set", () => {
    const merged = mergeEnvironments(
      { A: "1", B: "1", C: "1", D: "", E: undefined },
      { A: "2", B: "", C: undefined },
      { A: "3" },
    );
    expect(merged).toEqual({ A: "3", B: "1", C: "1", D: "" });
  });

  test.each(["DATABASE_URL", "DATABASE_URI", "POSTGRES_URI"])("%s sets the database", (name) => {
    expect(parse([], { [name]: "postgres://u:p@db/x" }).databaseUrl).toBe("postgres://u:p@db/x");
  });

  test.each([
    ["LANGGRAPH_POSTGRES_POOL_MAX_SIZE", "150", { databasePoolSize: 150 }],
    ["BG_JOB_MAX_RETRIES", "5", { maxAttempts: 5 }],
    ["N_JOBS_PER_WORKER", "5", { jobsPerWorker: 5 }],
    ["BG_JOB_TIMEOUT_SECS", "60", { runTimeoutSeconds: 60 }],
    ["BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS", "180", { shutdownGraceSeconds: 180 }],
    ["RESUMABLE_STREAM_TTL_SECONDS", "120", { eventRetentionSeconds: 120 }],
    ["LOG_JSON", "true", { logFormat: "json" }],
    ["LOG_JSON", "false", { logFormat: "pretty" }],
    ["LOG_LEVEL", "WARNING", { logLevel: "warn" }],
    ["LOG_LEVEL", "INFO", { logLevel: "info" }],
  ])("%s=%s has the meaning of the hosted server", (name, value, expected) => {
    expect(parse([], { [name]: value })).toMatchObject(expected);
  });

  test("the server's own name overrides the hosted server's", () => {
    expect(parse([], { MAX_ATTEMPTS: "2", BG_JOB_MAX_RETRIES: "5" }).maxAttempts).toBe(2);
  });

  test("the log is pretty on a terminal and JSON elsewhere, unless LOG_FORMAT is set", () => {
    expect(parse([], {}, true).logFormat).toBe("pretty");
    expect(parse([], {}, false).logFormat).toBe("json");
    expect(parse([], { LOG_FORMAT: "pretty" }, false).logFormat).toBe("pretty");
  });

  test("lists are separated by commas, with or without spaces", () => {
    const config = parse([], { CORS_ALLOW_ORIGINS: "https://a.example, https://b.example" });
    expect(config.corsAllowOrigins).toEqual(["https://a.example", "https://b.example"]);
  });

  test("a configuration can't be changed", () => {
    const config = parse([], { API_KEYS: KEY });
    expect(Object.isFrozen(config)).toBe(true);
    expect(Object.isFrozen(config.apiKeys)).toBe(true);
  });
});

describe("refusals", () => {
  test.each([
    [["--port", "eighty"], {}, "--port must be a whole number from 0 to 65535, not 'eighty'."],
    [[], { PORT: "70000" }, "PORT must be a whole number from 0 to 65535, not '70000'."],
    [[], { ROLE: "boss" }, "ROLE must be one of all, api, worker, not 'boss'."],
    [
      [],
      { MAX_RUNNING_RUNS_BY_GRAPH: "agent=1.5" },
      "whole numbers of runs from 1 to 1000000, not 'agent=1.5'.",
    ],
    [[], { DATABASE_PREPARED_STATEMENTS: "perhaps" }, "must be true or false, not 'perhaps'."],
    [["--port"], {}, "option '-p, --port <value>' argument missing"],
    [["--prot", "80"], {}, "unknown option '--prot'\n(Did you mean --port?)"],
    [["--foo"], {}, "unknown option '--foo'"],
    [["serve"], {}, "too many arguments"],
    [[], { LOG_JSON: "perhaps" }, "LOG_JSON must be pretty or json, or true or false"],
  ])("%j %j is refused", (argv, environment, message) => {
    expect(() => parse(argv, environment as Record<string, string>)).toThrow(message);
  });

  test("an invalid database URL is refused with a message without its password", () => {
    const attempt = () => parse([], { DATABASE_URL: "mysql://root:hunter2@db/x" });
    expect(attempt).toThrow("DATABASE_URL must be a URL like postgresql://user:password@host:5432/database.");
    expect(attempt).not.toThrow(/hunter2/);
  });
});

describe("relations", () => {
  test("heartbeats and searches for dead servers follow the lease, limits of requests follow one option", () => {
    expect(parse([], { LEASE_SECONDS: "5" })).toMatchObject({ heartbeatSeconds: 1, sweepSeconds: 1 });
    const limits = ["readsPerMinute", "writesPerMinute", "searchesPerMinute", "streamsPerMinute"] as const;
    const limitsOf = (config: Config) => limits.map((name) => config[name]);
    expect(limitsOf(parse())).toEqual([3_000, 1_200, 600, 600]);
    expect(limitsOf(parse([], { RATE_LIMIT_REQUESTS: "0" }))).toEqual([0, 0, 0, 0]);
    expect(limitsOf(parse([], { RATE_LIMIT_REQUESTS: "1" }))).toEqual([1, 1, 1, 1]);
    expect(parse([], { RATE_LIMIT_REQUESTS: "0" }).failedLoginsPerMinute).toBe(600);
    expect(parse([], { WORKER_HEAP_MB: "1000" }).graphProcessResidentBytes).toBe(2_000_000_000);
  });

  test("a direct connection beside a pooler requires a DATABASE_URL", () => {
    const direct = { DATABASE_DIRECT_URL: "postgres://u:hunter2@db/x" };
    const attempt = () => parse([], direct);
    expect(attempt).toThrow("DATABASE_DIRECT_URL needs a DATABASE_URL beside it");
    expect(attempt).not.toThrow(/hunter2/);
    const config = parse([], { ...direct, DATABASE_URL: "postgres://u:p@pooler/x" });
    expect(config.databaseDirectUrl).toBe("postgres://u:hunter2@db/x");
  });

  test("the limit of a blocked loop is at least a lease, or 0", () => {
    expect(() => parse([], { LEASE_SECONDS: "90", BLOCKED_LOOP_SECONDS: "60" })).toThrow(
      "BLOCKED_LOOP_SECONDS (60) must be 0 or at least LEASE_SECONDS (90)",
    );
    expect(parse([], { LEASE_SECONDS: "90", BLOCKED_LOOP_SECONDS: "90" }).blockedLoopSeconds).toBe(90);
    expect(parse([], { LEASE_SECONDS: "90", BLOCKED_LOOP_SECONDS: "0" }).blockedLoopSeconds).toBe(0);
  });

  test("the limit of a blocked graph process is shorter than a blocked server's, and neither is shorter than the lease", () => {
    expect(parse(["--workers", "2"]).blockedLoopSeconds).toBe(15);
    expect(parse(["--workers", "auto"]).blockedLoopSeconds).toBe(15);
    expect(parse(["--workers", "0"]).blockedLoopSeconds).toBe(60);
    expect(parse(["--workers", "2"], { LEASE_SECONDS: "20" }).blockedLoopSeconds).toBe(20);
    expect(parse(["--workers", "2"], { LEASE_SECONDS: "3600" }).blockedLoopSeconds).toBe(3_600);
    expect(parse(["--workers", "0"], { LEASE_SECONDS: "3600" }).blockedLoopSeconds).toBe(3_600);
    expect(parse(["--workers", "2"], { BLOCKED_LOOP_SECONDS: "60" }).blockedLoopSeconds).toBe(60);
    expect(parse(["--workers", "2"], { BLOCKED_LOOP_SECONDS: "0" }).blockedLoopSeconds).toBe(0);
  });

  test.each(["0.0.0.0", "::", "192.168.1.2", "example.org"])(
    "the server refuses to listen on %s without API keys",
    (host) => {
      const mayListen = (config: Config, hasStoredKeys = false) =>
        expect(() => assertMayListen(config, { hasStoredKeys }));
      mayListen(parse(["--host", host])).toThrow(`Refusing to listen on ${host} without API keys`);
      mayListen(parse(["--host", host]), true).not.toThrow();
      mayListen(parse(["--host", host], { API_KEYS: KEY })).not.toThrow();
      mayListen(parse(["--host", host, "--unsafe-no-auth"])).not.toThrow();
      mayListen(parse(["--host", host], { UNSAFE_NO_AUTH: "true" })).not.toThrow();
      expect(isExposed(parse(["--host", host]))).toBe(true);
      expect(isExposed(parse(["--host", host, "--unsafe-no-auth"]))).toBe(false);
    },
  );

  test("auth handlers protect like keys", () => {
    const config = parse(["--host", "0.0.0.0"]);
    expect(() => assertMayListen(config, { hasStoredKeys: false, hasAuth: true })).not.toThrow();
  });

  test("beyond loopback, a key that can be guessed is refused", () => {
    expect(() => parse(["--host", "0.0.0.0"], { API_KEYS: "secret" })).toThrow(/less than 16 characters/);
    expect(parse([], { API_KEYS: "secret" }).apiKeys).toEqual(["secret"]);
  });

  test.each(["127.0.0.1", "127.8.8.8", "localhost", "::1"])("%s needs no API keys", (host) => {
    expect(parse(["--host", host]).host).toBe(host);
  });
});

describe("short flags", () => {
  test("the short flags of langgraphjs dev equal the long ones", () => {
    expect(parse(["-p", "8200", "-c", "elsewhere.json"])).toMatchObject({
      port: 8200,
      graphConfigFile: "elsewhere.json",
    });
    expect(parse(["-p8200"]).port).toBe(8200);
  });
});
