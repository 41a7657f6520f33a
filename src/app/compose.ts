import { createAnswerRoom, type AnswerRoom } from "../http/answer-room.ts";
import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { createAssistantRepository } from "../assistants/repository.ts";
import { createAssistantRoutes } from "../assistants/routes.ts";
import { createAssistantService } from "../assistants/service.ts";
import { createAuthenticate } from "../access/api-keys.ts";
import { createAuthorize, type Authorize } from "../access/authorize.ts";
import { THE_SERVER } from "../access/caller.ts";
import { createCheckpointStorage } from "../checkpoints/storage.ts";
import type { Config } from "../config/config.ts";
import { acceleratorsOf, seesDeaths } from "../database/accelerators.ts";
import { openDatabase } from "../database/database.ts";
import { migrate } from "../database/migrate.ts";
import { assertSessions } from "../database/pooling.ts";
import { openSignals } from "../database/signals.ts";
import { createEndings } from "../engine/endings.ts";
import { createExecutor } from "../engine/attempt/execution.ts";
import { openGraphExecutor, planGraphProcesses } from "./graph-processes.ts";
import { createHeartbeat } from "../engine/lease/heartbeat.ts";
import { openHosting } from "../queue/hosting.ts";
import type { RunEnd } from "../queue/attempts.ts";
import { createRunEnds } from "../queue/ending.ts";
import { createQueue } from "../queue/queue.ts";
import type { RecordEnds } from "../queue/sql/ended.ts";
import { startRecovery } from "../engine/recovery.ts";
import { createWorker } from "../engine/worker/worker.ts";
import { readGraphConfig } from "../project/langgraph-json.ts";
import { loadGraphs } from "../graphs/graphs.ts";
import { createApp } from "../http/app.ts";
import { allowedOrigins } from "../http/origins.ts";
import { createSiteCheck } from "../http/sites.ts";
import { checkpointNotFound } from "../lib/errors.ts";
import { NO_FAULTS, type Faults } from "../lib/faults.ts";
import { newId } from "../lib/ids.ts";
import type { JsonObject } from "../lib/json.ts";
import type { Logger } from "../lib/logger.ts";
import { createRunRepository } from "../runs/repository.ts";
import { createRunRoutes } from "../runs/routes.ts";
import { createRunSearcher } from "../runs/search.ts";
import { createRunService } from "../runs/service.ts";
import { createStatusRepository } from "../status/repository.ts";
import { createStatusRoutes } from "../status/routes.ts";
import { createStatusService } from "../status/service.ts";
import { PostgresStore } from "../store/postgres-store.ts";
import { createStoreRepository } from "../store/repository.ts";
import { createStoreRoutes } from "../store/routes.ts";
import { openItems } from "../store/semantic-search.ts";
import { startItemExpiry } from "../store/expiry.ts";
import { createStoreService } from "../store/service.ts";
import { createEventLog } from "../events/log.ts";
import { startEventRetention } from "../events/retention.ts";
import { createHub } from "../events/hub.ts";
import { createTurns } from "../events/turns.ts";
import { startRetention } from "../threads/upkeep/retention.ts";
import { startThreadlessSweep } from "../threads/upkeep/threadless.ts";
import { createThreadRoutes } from "../threads/routes.ts";
import { createThreadService } from "../threads/service.ts";

export interface ServerParts {
  connectionString: string;
  logger: Logger;
  /** The process is this server's own: it is ended when its loop is blocked for longer than BLOCKED_LOOP_SECONDS. */
  endsBlockedProcess?: boolean;
  /** For the fault tests. */
  faults?: Faults;
  /** For the tests of how runs end, until something is stored of every end. */
  recordEnds?: RecordEnds | undefined;
  /** For tests that don't wait for half a minute. */
  answerRoom?: AnswerRoom | undefined;
  /** What callers may do; everything if left out. */
  authorize?: Authorize | undefined;
}

/** Of the runs in hand, in the last line of a process. */
const RUNS_NAMED = 10;

/** A whole server; several can live in one process. */
export interface Server {
  readonly app: FastifyInstance;
  /** Ids of the graphs that it hosts. */
  readonly graphs: readonly string[];
  /** JSON schema of what a graph takes; undefined if that isn't known without building it, as of a factory. */
  inputSchemaOf(graphId: string): Promise<JsonObject | undefined>;
  /** Ids of the runs in its hands, ten at most: one of them may be what ends the process. */
  runsInHand(): readonly string[];
  listen(): Promise<{ address: string }>;
  /**
   * Closes everything, each thing though others could not be closed; rejects with what those threw. `failed`: after a
   * fault that may be a run's, so the runs that are not ended in time count as lost, not as handed back.
   */
  close(options?: { failed?: boolean }): Promise<void>;
}

/**
 * The composition root: builds everything once, in order, and hands each part what it depends on. `close` takes
 * it down in reverse; so does a start that fails half-way.
 */
export const createServer = async (config: Config, parts: ServerParts): Promise<Server> => {
  const { connectionString, logger, faults = NO_FAULTS, recordEnds } = parts;
  const { answerRoom = createAnswerRoom(), authorize = createAuthorize() } = parts;
  const closers: ((options: { failed: boolean }) => Promise<void> | void)[] = [];
  let ready = false;
  const close = async ({ failed = false } = {}): Promise<void> => {
    ready = false;
    const errors: unknown[] = [];
    for (const closer of closers.splice(0).reverse()) {
      try {
        await closer({ failed });
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw new AggregateError(errors, "Not everything could be closed.");
  };

  const build = async (): Promise<Server> => {
    const processId = newId();
    const { databaseDirectUrl: directConnectionString, databaseSchema: schema } = config;
    const { databasePreparedStatements: preparedStatements } = config;
    const accelerators = acceleratorsOf(config);
    await assertSessions({ connectionString, directConnectionString, preparedStatements }, accelerators);
    const sessionConnectionString = directConnectionString ?? connectionString;
    await migrate(sessionConnectionString, { schema, ...accelerators, logger });
    const database = openDatabase({
      connectionString,
      schema,
      poolSize: planGraphProcesses(config).mainPoolSize,
      applicationName: "threadloom",
      preparedStatements,
      logger,
    });
    closers.push(() => database.close());
    const signals = await openSignals({
      database,
      connectionString: sessionConnectionString,
      processId,
      accelerators,
      logger,
    });
    closers.push(() => signals.close());

    const { threadExpiry, storeExpiry, storeIndex } = await readGraphConfig(config.graphConfigFile);
    const storeRepository = createStoreRepository(database, database);
    const itemParts = { database, repository: storeRepository, index: storeIndex, ...accelerators, logger };
    const storeItems = await openItems(itemParts);
    closers.push(() => storeItems.close());
    const storeParts = { repository: storeRepository, authorize, items: storeItems, expiry: storeExpiry };
    const checkpoints = createCheckpointStorage({ database, logger });
    const graphs = await loadGraphs({
      configPath: config.graphConfigFile,
      logger,
      checkpointer: checkpoints.saver,
      store: new PostgresStore({ ...storeParts, visibility: await authorize(THE_SERVER, "store", "search") }),
    });
    closers.push(() => graphs.close());

    const runRepository = createRunRepository(database);
    const everyThread = await authorize(THE_SERVER, "threads", "read");
    const ends = createRunEnds(database, { checkpoints, recordEnds });
    const noticing = { seesDeaths: seesDeaths(accelerators) };
    const queue = createQueue(database, { ...config, graphIds: graphs.ids, ...noticing });
    const eventLog = createEventLog(database);
    const hub = createHub({
      eventLog,
      turns: createTurns(database),
      signals,
      processId,
      phaseOf: (run) => runRepository.phaseOf(run, processId),
      faults,
      logger,
    });
    closers.push(() => hub.close());
    const endings = createEndings({ signals, logger });
    closers.push(() => endings.close());
    // After the graphs: what is wrong with one is said once, by this process.
    const interruptsOf = (threadId: string) => runRepository.interrupts(everyThread, threadId);
    const executionParts = { connectionString, graphs, checkpoints, interruptsOf, logger };
    const { graphExecutor, close: closeGraphs } = openGraphExecutor(config, executionParts);
    closers.push(closeGraphs);
    const executor = createExecutor({
      database,
      queue,
      ends,
      graphs,
      checkpoints,
      graphExecutor,
      hub,
      eventLog,
      processId,
      runTimeoutSeconds: config.runTimeoutSeconds,
      faults,
      logger,
    });
    const heartbeat = createHeartbeat({
      queue,
      onReadElsewhere: hub.logFor,
      shared: database,
      connectionString,
      schema,
      preparedStatements,
      leaseSeconds: config.leaseSeconds,
      heartbeatSeconds: config.heartbeatSeconds,
      blockedLoopSeconds: config.blockedLoopSeconds,
      endsBlockedProcess: parts.endsBlockedProcess,
      logger,
    });
    closers.push(() => heartbeat.close());
    const worker = createWorker({
      queue,
      executor,
      signals,
      endings,
      processId,
      concurrency: config.role === "api" ? 0 : config.jobsPerWorker,
      leaseSeconds: config.leaseSeconds,
      heartbeat,
      faults,
      logger,
    });
    const hosting = await openHosting({
      database,
      processId,
      graphIds: config.role === "api" ? undefined : graphs.ids,
      logger,
    });
    closers.push(() => hosting.close());
    const recovery = startRecovery({
      queue,
      executor,
      endings,
      signals,
      leaseSeconds: config.leaseSeconds,
      sweepSeconds: config.sweepSeconds,
      logger,
    });
    closers.push(() => recovery.close());
    const store = createStoreService(storeParts);
    const onThreadsDeleted = (threadIds: readonly string[], ended: readonly RunEnd[] = []): void => {
      worker.abandonThreads(threadIds);
      for (const end of ended) endings.tell(end);
    };
    const threadParts = { database, authorize, checkpoints, onThreadsDeleted, logger };
    const threads = createThreadService({
      ...threadParts,
      ends,
      graphs,
      defaultTtl: threadExpiry.defaultTtl,
    });
    const retention = startRetention({ ...threadParts, expiry: threadExpiry });
    closers.push(() => retention.close());
    const events = startEventRetention({
      eventLog,
      retentionSeconds: config.eventRetentionSeconds,
      logger,
    });
    closers.push(() => events.close());
    const items = startItemExpiry({ store, sweepIntervalMinutes: storeExpiry.sweepIntervalMinutes, logger });
    closers.push(() => items.close());
    const { upkeep } = threads;
    const threadless = startThreadlessSweep({ queue, upkeep, sweepSeconds: config.sweepSeconds, logger });
    closers.push(() => threadless.close());

    const assistants = createAssistantService({
      database,
      repository: createAssistantRepository(database),
      authorize,
      graphs,
      deleteThreads: (caller, threadIds) => threads.upkeep.deleteMany(caller, threadIds),
      recursionLimitMax: config.recursionLimitMax,
    });
    const keepTheirs = await assistants.ensureSystemAssistants(
      THE_SERVER,
      graphs.ids,
      config.assistantConfigs,
    );
    if (keepTheirs.length > 0) {
      logger.warn(
        { graphs: keepTheirs },
        "LANGGRAPH_CONFIG is for new assistants: those of these graphs were there before and keep their config",
      );
    }
    const runs = createRunService({
      database,
      authorize,
      everyThread,
      repository: runRepository,
      searcher: createRunSearcher(database),
      worker,
      endings,
      ends,
      hub,
      eventLog,
      signals,
      processId,
      threadTtl: threadExpiry.defaultTtl,
      recursionLimitMax: config.recursionLimitMax,
      threads,
      checkpoints: {
        async assertExists(threadId, checkpointNs, checkpointId) {
          const found = await checkpoints.readAt(threadId, checkpointNs, checkpointId);
          if (found === undefined) throw checkpointNotFound(checkpointId);
        },
      },
    });

    const status = createStatusService({
      database,
      repository: createStatusRepository(database),
      listUnhosted: () => hosting.listUnhosted(),
      readiness: () => (ready ? undefined : "is starting or stopping"),
      workers: () => ({ max: config.role === "api" ? 0 : config.jobsPerWorker, active: worker.active }),
    });
    closers.push(() => status.close());

    const origins = allowedOrigins(config.corsAllowOrigins);
    const app = await createApp({
      logger,
      answerRoom,
      authenticate: createAuthenticate(config.apiKeys),
      bodyLimits: { bytes: config.bodyLimitBytes, elements: config.bodyElementsAtMost },
      origins,
      ...(config.apiKeys.length === 0 ? { siteCheck: createSiteCheck({ ...config, origins, logger }) } : {}),
      routes: [
        createStatusRoutes(status),
        // A worker answers health probes and executes runs, nothing else.
        ...(config.role === "worker"
          ? []
          : [
              createAssistantRoutes(assistants),
              createThreadRoutes(threads, answerRoom),
              createRunRoutes(runs, answerRoom),
              createStoreRoutes(store, answerRoom),
            ]),
      ],
    });
    closers.push(() => app.close());
    // First of all: runs end or are handed back while their readers are still connected.
    closers.push((options) => worker.close(config.shutdownGraceSeconds, options));
    // Last of all, for what fails before this must leave nothing behind that takes runs.
    worker.open();

    return {
      app,
      graphs: graphs.ids,
      async inputSchemaOf(graphId) {
        return graphs.isFactory(graphId) ? undefined : (await graphs.schemas(graphId)).input_schema;
      },
      runsInHand: () => worker.runIds.slice(0, RUNS_NAMED),
      async listen() {
        await app.listen({ host: config.host, port: config.port });
        ready = true;
        const { address, port, family } = app.server.address() as AddressInfo;
        return { address: `http://${family === "IPv6" ? `[${address}]` : address}:${port}` };
      },
      close,
    };
  };

  try {
    return await build();
  } catch (error) {
    await close().catch((closeError: unknown) => logger.error({ err: closeError }, "closing failed"));
    throw error;
  }
};
