import { resolve } from "node:path";
import { createApiKeys } from "../../access/api-keys.ts";
import type { Authorize } from "../../access/authorize.ts";
import { THE_SERVER } from "../../access/caller.ts";
import { openApiKeyCache } from "../../access/keys/api-key-cache.ts";
import { createKeyRepository } from "../../access/keys/repository.ts";
import { assertObjectStore } from "../../state/checkpoints/objects.ts";
import { createCheckpointStorage } from "../../state/checkpoints/storage.ts";
import { assertMayListen, isExposed, type Config } from "../../platform/config/config.ts";
import { openDatabase, type Queryable } from "../../platform/database/database.ts";
import { StartError } from "../../platform/domain/errors.ts";
import { assertEncryptionKeys, keepKeyNoted } from "../../platform/database/encryption-keys.ts";
import { migrate } from "../../platform/database/migrate.ts";
import { createMetrics } from "../../platform/metrics/metrics.ts";
import { assertSessions } from "../../platform/database/pooling.ts";
import { openSignals } from "../../platform/database/signals.ts";
import { loadGraphs, type LoadGraphsOptions, type Graphs } from "../../graphs/graphs.ts";
import { missingCompiler } from "../../graphs/source/compiler.ts";
import { areSchemasKept, createSourceReader, type SourceReader } from "../../graphs/source/source-schemas.ts";
import { NO_FAULTS, type Faults } from "../../platform/domain/faults.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { createReadRoom } from "../../http/large-answers.ts";
import type { Room } from "../../http/room.ts";
import { readGraphConfig, type GraphEntry } from "../../graphs/project/langgraph-json.ts";
import type { StoreIndexConfig } from "../../graphs/project/store-embedding.ts";
import { webhooksBehind } from "../../graphs/project/webhooks.ts";
import { PostgresStore } from "../../api/store/postgres-store.ts";
import { StoreRepository } from "../../api/store/repository.ts";
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

const openGraphs = async (
  config: Config,
  loading: LoadGraphsOptions,
  entries: readonly GraphEntry[],
): Promise<Graphs> => {
  const missing = config.sourceSchemas === true ? missingCompiler() : undefined;
  const entry = config.sourceSchemas === true && missing === undefined ? SCHEMA_PROCESS : undefined;
  const sourceOptions = { ...loading, cacheFolder: resolve(config.dataFolder), entry };
  const openSource = (): SourceReader | undefined =>
    config.sourceSchemas === false ? undefined : createSourceReader(sourceOptions);
  const graphs = await loadGraphs({ ...loading, openSource });
  if (missing === undefined || (await areSchemasKept(sourceOptions, entries))) return graphs;
  const unread = entries.filter(({ id, file }) => TYPESCRIPT.test(file) && graphs.hasUntypedInputs(id));
  if (unread.length > 0)
    loading.logger.info(
      { graphs: unread.map(({ id }) => id) },
      `the console shows fields that only TypeScript types describe as plain JSON. ${missing}`,
    );
  return graphs;
};

/** Opens the parts that all other parts of a server share. */
export const openFoundation = async (config: Config, parts: ServerParts, lifecycle: Lifecycle) => {
  const { connectionString, development, logger, environment = {} } = parts;
  const processId = newId();
  const { databaseDirectUrl: directConnectionString, databaseSchema: schema } = config;
  await assertSessions({ connectionString, directConnectionString });
  const sessionConnectionString = directConnectionString ?? connectionString;
  await migrate(sessionConnectionString, { schema, logger });
  const objects = await openObjectStore(objectStoreOf(config));
  if (objects !== undefined) lifecycle.closing(objects);
  const database = lifecycle.closing(
    openDatabase({
      connectionString,
      schema,
      poolSize: planGraphProcesses(config).mainPoolSize,
      applicationName: "threadloom",
      preparedStatements: config.databasePreparedStatements,
      encryption: encryptionOf(config),
      objects,
      logger,
    }),
  );
  await assertEncryptionKeys(database);
  await assertObjectStore(database);
  const notedKey = await keepKeyNoted(database, processId, logger);
  if (notedKey !== undefined) lifecycle.closing(notedKey);
  const stored = lifecycle.closing(
    await openApiKeyCache({ repository: createKeyRepository(database), logger }),
  );
  const project = await readGraphConfig(config.graphConfigFile, config.projectKeys);
  const { auth, entries, storeExpiry, storeIndex } = project;
  const hasApp = project.http.app !== undefined;
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
    await openSignals({ database, connectionString: sessionConnectionString, processId, logger }),
  );

  assertNoVectors(database, storeIndex);
  const repository = new StoreRepository(database);
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
  const visibility = await authorize(THE_SERVER, "store", "search", { namespace: [] });
  const loading = {
    configPath: config.graphConfigFile,
    projectKeys: config.projectKeys,
    logger,
    signal: parts.signal,
    checkpointer: checkpoints.saver,
    store: new PostgresStore({ ...storeParts, visibility }),
  };
  development?.trace.forget();
  const graphs = lifecycle.closing(await openGraphs(config, loading, entries));
  return {
    ...project,
    ...parts,
    environment,
    faults: parts.faults ?? NO_FAULTS,
    readRoom: parts.readRoom ?? createReadRoom(),
    config,
    lifecycle,
    callerLimits: callerLimitsOf(config, database.encryption, logger),
    processId,
    access,
    authorize,
    database,
    signals,
    checkpoints,
    graphs,
    metrics,
    telemetry,
    store: createStoreService(storeParts),
    webhooks: config.unsafeNoAuth ? webhooksBehind(project.webhooks, { hasApp }) : project.webhooks,
  };
};

export type Foundation = Awaited<ReturnType<typeof openFoundation>>;

export interface Development {
  readonly trace: ModuleTrace;
  /** Absolute paths that graph processes have loaded. */
  onFiles(files: readonly string[]): void;
}
