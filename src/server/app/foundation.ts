import { resolve } from "node:path";
import { createApiKeys } from "../../access/api-keys.ts";
import type { Authorize } from "../../access/authorize.ts";
import { THE_SERVER } from "../../access/caller.ts";
import { openApiKeyCache } from "../../access/keys/api-key-cache.ts";
import { createKeyRepository } from "../../access/keys/repository.ts";
import { assertObjectStore } from "../../state/checkpoints/upkeep/objects.ts";
import { createCheckpointStorage } from "../../state/checkpoints/storage.ts";
import { assertMayListen, isExposed, type Config } from "../../platform/config/config.ts";
import { logClockDifference } from "../../platform/database/clock.ts";
import {
  openDatabase as openTables,
  type Database,
  type DatabaseOptions,
  type Queryable,
} from "../../platform/database/database.ts";
import { StartError } from "../../platform/domain/errors.ts";
import { assertEncryptionKeys, keepKeyNoted } from "../../platform/database/encryption-keys.ts";
import { migrate } from "../../platform/database/migrate.ts";
import { createMetrics } from "../../platform/metrics/metrics.ts";
import { assertSessions } from "../../platform/database/pooling.ts";
import { openSignals } from "../../platform/database/signals.ts";
import {
  loadGraphs,
  type LoadGraphsOptions,
  type Graphs,
  createReloadingGraphs,
} from "../../graphs/graphs.ts";
import { missingCompiler } from "../../graphs/source/compiler.ts";
import { areSchemasKept, createSourceReader } from "../../graphs/source/source-schemas.ts";
import { NO_FAULTS, type Faults } from "../../platform/domain/faults.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { createReadRoom } from "../../http/large-answers.ts";
import type { Room } from "../../http/room.ts";
import { readGraphConfig, type GraphEntry } from "../../graphs/project/langgraph-json.ts";
import type { StoreIndexConfig } from "../../graphs/project/store-embedding.ts";
import { webhooksBehind } from "../../graphs/project/webhooks.ts";
import { PostgresStore } from "../../api/store/postgres-store.ts";
import { createStoreRepository } from "../../api/store/repository.ts";
import { openItems } from "../../api/store/semantic-search.ts";
import { createStoreService } from "../../api/store/service.ts";
import { openAccess } from "./auth.ts";
import { encryptionOf, objectStoreOf } from "../../platform/config/options.ts";
import { openObjectStore } from "../../platform/database/object-store.ts";
import { isTelemetryOn } from "../../platform/telemetry/telemetry.ts";
import { planGraphProcesses } from "./graph-processes.ts";
import { callerLimitsOf } from "./limits.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { ModuleTrace } from "../../platform/lib/module-trace.ts";
import { isDeclaredByTypes } from "../../graphs/json-schemas.ts";
import { TYPESCRIPT } from "../../graphs/modules.ts";

const SCHEMA_PROCESS = new URL("./schema-process-entry.js", import.meta.url);

const CAPTURES_CONTENTS = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";

export interface ServerParts {
  connectionString: string;
  logger: Logger;
  /** Ends the process if its loop is blocked for longer than BLOCKED_LOOP_SECONDS. */
  endsBlockedProcess?: boolean;
  /** For fault tests. */
  faults?: Faults;
  environment?: Readonly<Record<string, string | undefined>>;
  /** For tests with less room. */
  readRoom?: Room | undefined;
  development?: Development | undefined;
  signal?: AbortSignal | undefined;
  /** Default: API keys and the project's handlers. */
  authorize?: Authorize | undefined;
}

/** Vectors nearly reveal their texts, and pgvector can't compare encrypted ones. @throws StartError */
const assertNoVectors = ({ encryption }: Queryable, index: StoreIndexConfig | undefined): void => {
  if (!encryption.isOn || index === undefined) return;
  throw new StartError(
    "The server refuses to start: store.index of langgraph.json stores vectors, which reveal their texts and can't be encrypted, " +
      "although LANGGRAPH_AES_KEY is set. Remove one of the two.",
  );
};

const openDatabase = async (
  config: Config,
  lifecycle: Lifecycle,
  options: Pick<DatabaseOptions, "connectionString" | "logger">,
): Promise<Database> => {
  const objects = await openObjectStore(objectStoreOf(config));
  if (objects !== undefined) lifecycle.closing(objects);
  return lifecycle.closing(
    openTables({
      ...options,
      schema: config.databaseSchema,
      poolSize: planGraphProcesses(config).mainPoolSize,
      applicationName: "threadloom",
      preparedStatements: config.databasePreparedStatements,
      encryption: encryptionOf(config),
      objects,
    }),
  );
};

/** Opens the parts that all other parts of a server share. */
export const openFoundation = async (config: Config, parts: ServerParts, lifecycle: Lifecycle) => {
  const { development, logger, faults = NO_FAULTS, environment = {} } = parts;
  const { readRoom = createReadRoom() } = parts;
  const processId = newId();
  const { databaseDirectUrl: directConnectionString, databaseSchema: schema } = config;
  const { databasePreparedStatements: preparedStatements } = config;
  const { connectionString } = parts;
  await assertSessions({ connectionString, directConnectionString, preparedStatements });
  const sessionConnectionString = directConnectionString ?? connectionString;
  await migrate(sessionConnectionString, { schema, logger });
  const database = await openDatabase(config, lifecycle, {
    connectionString,
    logger,
  });
  await logClockDifference(database, logger);
  await assertEncryptionKeys(database);
  await assertObjectStore(database);
  const notedKey = await keepKeyNoted(database, processId, logger);
  if (notedKey !== undefined) lifecycle.closing(notedKey);
  const stored = lifecycle.closing(
    await openApiKeyCache({ repository: createKeyRepository(database), logger }),
  );
  const project = await readGraphConfig(config.graphConfigFile, config.projectKeys);
  const { threadExpiry, storeExpiry, storeIndex, http, ui, mcp, usage, entries } = project;
  const hasApp = http.app !== undefined;
  const webhooks = config.unsafeNoAuth ? webhooksBehind(project.webhooks, { hasApp }) : project.webhooks;
  const { auth } = project;
  assertMayListen(config, { hasStoredKeys: stored.isInUse, hasAuth: auth !== undefined });
  const apiKeys = createApiKeys({
    configured: config.apiKeys,
    stored,
    neverOpen: isExposed(config) && auth === undefined,
  });
  const encryptedKeys = database.encryption.cipher?.metadataKeys;
  const access = await openAccess({ auth, entries, apiKeys, encryptedKeys, logger });
  const { authorize = access.authorize } = parts;
  const signals = lifecycle.closing(
    await openSignals({
      database,
      connectionString: sessionConnectionString,
      processId,
      logger,
    }),
  );

  assertNoVectors(database, storeIndex);
  const repository = createStoreRepository(database, database);
  const items = await openItems({ database, repository, index: storeIndex, logger });
  const storeParts = { repository, authorize, items, expiry: storeExpiry };
  const telemetry = isTelemetryOn() ? { contents: environment[CAPTURES_CONTENTS] === "true" } : undefined;
  const metrics = createMetrics({
    telemetry: telemetry !== undefined,
    isGraph: (graphId) => graphs.has(graphId),
  });
  const checkpoints = createCheckpointStorage({
    database,
    valueCharactersAtMost: config.stateValueCharactersAtMost,
    onWritten: metrics.checkpointsWritten,
    logger,
  });
  const loading: Omit<LoadGraphsOptions, "source"> = {
    configPath: config.graphConfigFile,
    projectKeys: config.projectKeys,
    logger,
    signal: parts.signal,
    checkpointer: checkpoints.saver,
    store: new PostgresStore({
      ...storeParts,
      visibility: await authorize(THE_SERVER, "store", "search", { namespace: [] }),
    }),
  };
  const sourceOptions = {
    configPath: config.graphConfigFile,
    projectKeys: config.projectKeys,
    cacheFolder: resolve(config.dataFolder),
    logger,
  };
  const missing = config.sourceSchemas === true ? missingCompiler() : undefined;
  const openSource = () =>
    config.sourceSchemas !== false
      ? createSourceReader({
          ...sourceOptions,
          entry: config.sourceSchemas === true && missing === undefined ? SCHEMA_PROCESS : undefined,
        })
      : undefined;
  const reloading =
    development &&
    (await createReloadingGraphs((edition) => {
      development.trace.forget();
      return loadGraphs({ ...loading, edition, source: openSource() });
    }));
  const graphs = lifecycle.closing(reloading ?? (await loadGraphs({ ...loading, source: openSource() })));
  const unread =
    missing === undefined || (await areSchemasKept(sourceOptions, entries))
      ? undefined
      : await unreadTypes(graphs, entries);
  if (unread !== undefined)
    logger.info(`the console shows these fields as plain JSON: ${unread}. ${missing}`);
  const store = createStoreService(storeParts);
  return {
    config,
    environment,
    endsBlockedProcess: parts.endsBlockedProcess,
    development,
    faults,
    lifecycle,
    logger,
    readRoom,
    callerLimits: callerLimitsOf(config, database.encryption, logger),
    connectionString,
    processId,
    access,
    authorize,
    database,
    signals,
    checkpoints,
    graphs,
    metrics,
    telemetry,
    reloading,
    store,
    threadExpiry,
    storeExpiry,
    http,
    webhooks,
    ui,
    mcp,
    usage,
    entries,
  };
};

export type Foundation = Awaited<ReturnType<typeof openFoundation>>;

export interface Development {
  readonly trace: ModuleTrace;
  /** Absolute paths that graph processes have loaded. */
  onFiles(files: readonly string[]): void;
}

const KEYS_NAMED = 5;

const namesOf = (keys: readonly string[]): string =>
  keys.length > KEYS_NAMED
    ? `${keys.slice(0, KEYS_NAMED).join(", ")} and ${keys.length - KEYS_NAMED} more`
    : keys.join(", ");

/** The fields of inputs whose type only TypeScript source tells; undefined if there are none. Factories are left out. */
export const unreadTypes = async (
  graphs: Graphs,
  entries: readonly GraphEntry[],
): Promise<string | undefined> => {
  const found: string[] = [];
  for (const { id, file } of entries) {
    if (!TYPESCRIPT.test(file) || graphs.isFactory(id)) continue;
    if (!isDeclaredByTypes(await graphs.resolve(id))) continue;
    const { properties = {} } = await graphs.declaredInput(id);
    const keys = Object.entries(properties as object).flatMap(([key, schema]) =>
      Object.keys(schema as object).length === 0 ? [key] : [],
    );
    if (keys.length > 0) found.push(`${namesOf(keys)} of graph '${id}'`);
  }
  return found.length === 0 ? undefined : found.join("; ");
};
