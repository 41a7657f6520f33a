import type { Room } from "../../src/http/room.ts";
import supertest from "supertest";
import type { Authorize } from "../../src/access/authorize.ts";
import type { Config } from "../../src/platform/config/config.ts";
import { createServer } from "../../src/server/app/compose.ts";
import { freshDatabase } from "./database.ts";
import { IS_ENCRYPTED, TEST_KEYS } from "./encryption.ts";
import { FIXTURE_GRAPHS, listeningLogger } from "./parts.ts";

/** The defaults of tests: one process with all roles, on a free port, with short intervals. */
const TEST_CONFIG: Config = {
  graphConfigFile: FIXTURE_GRAPHS,
  projectKeys: {},
  sourceSchemas: false,
  host: "127.0.0.1",
  port: 0,
  dataFolder: "",
  role: "all",
  databaseUrl: undefined,
  databaseDirectUrl: undefined,
  databaseWaitSeconds: 0,
  databasePoolSize: 10,
  databasePreparedStatements: true,
  databaseSchema: "threadloom",
  encryptionKeys: IS_ENCRYPTED ? TEST_KEYS : [],
  encryptedMetadataKeys: [],
  objectStoreUrl: undefined,
  objectStoreEndpoint: undefined,
  objectStoreRegion: undefined,
  jobsPerWorker: 10,
  graphProcesses: 0,
  graphProcessHeapMegabytes: 256,
  graphProcessRuns: 10_000,
  graphProcessResidentBytes: 1_000_000_000,
  webhookSecrets: [],
  webhookRetentionSeconds: 3_600,
  apiKeys: [],
  unsafeNoAuth: false,
  logLevel: "trace",
  logFormat: "json",
  logContents: false,
  corsAllowOrigins: ["*"],
  allowedHosts: [],
  bodyLimitBytes: 4 * 1024 * 1024,
  bodyElementsAtMost: 250_000,
  requestsPerMinute: 3_000,
  readsPerMinute: 3_000,
  searchesPerMinute: 600,
  writesPerMinute: 1_200,
  runsPerMinute: 600,
  streamsPerMinute: 600,
  failedLoginsPerMinute: 600,
  keyFactor: 20,
  pendingRunsPerThread: 100,
  pendingRunsPerCaller: 1_000,
  runningRunsPerCaller: 0,
  runningRunsByGraph: new Map(),
  cronsPerCaller: 100,
  streamsPerCaller: 100,
  streamsAtMost: 10_000,
  accessCheckSeconds: 60,
  connectionsAtMost: 15_000,
  listenBacklog: 4_096,
  stateValueCharactersAtMost: 64_000_000,
  eventCharactersAtMost: 64_000_000,
  trustedProxies: [],
  headersTimeoutSeconds: 20,
  requestTimeoutSeconds: 60,
  keepAliveSeconds: 72,
  runTimeoutSeconds: 3_600,
  recursionLimitMax: 10_000,
  shutdownGraceSeconds: 1,
  eventRetentionSeconds: 600,
  traces: "all",
  traceRetentionSeconds: 604_800,
  usageRetentionSeconds: 34_560_000,
  leaseSeconds: 10,
  heartbeatSeconds: 2,
  blockedLoopSeconds: 60,
  sweepSeconds: 1,
  maxAttempts: 3,
};

/** Options of a test server: any part of its configuration, and a shared database. */
export interface TestServerOptions extends Partial<Config> {
  /** Makes the server a replica on the database of another test server, which then outlives it. */
  connectionString?: string;
  readRoom?: Room;
  /** Authorization of callers; everything is allowed if left out. */
  authorize?: Authorize;
  /** The variables for headers of webhooks. */
  environment?: Record<string, string>;
}

/**
 * The whole server over HTTP on a database of its own, with the fixture graphs. `lines` is its log. `close()` stops it and drops the
 * database.
 */
export const startTestServer = async ({
  connectionString,
  readRoom,
  authorize,
  environment,
  ...overrides
}: TestServerOptions = {}) => {
  const fresh = connectionString === undefined ? await freshDatabase() : undefined;
  const address = connectionString ?? fresh?.connectionString ?? "";
  const { logger, lines } = listeningLogger();
  const stop = async () => await fresh?.drop();
  try {
    const server = await createServer(
      { ...TEST_CONFIG, ...overrides },
      { connectionString: address, logger, readRoom, authorize, ...(environment && { environment }) },
    );
    const { address: url } = await server.listen();
    return {
      url,
      app: server.app,
      graphs: server.graphs,
      client: supertest(url),
      connectionString: address,
      lines,
      async close(): Promise<void> {
        await server.close();
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
};

export type TestServer = Awaited<ReturnType<typeof startTestServer>>;
