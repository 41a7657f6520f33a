/** Uses environment, signals and exit, as serve.ts does. */
import { markedOfGraph } from "../../platform/lib/contents.ts";
import { Worker } from "node:worker_threads";
import { createAuthorize } from "../../access/authorize.ts";
import { THE_SERVER } from "../../access/caller.ts";
import { createCheckpointStorage } from "../../state/checkpoints/storage.ts";
import { openDatabase } from "../../platform/database/database.ts";
import { openObjectStore } from "../../platform/database/object-store.ts";
import { isPassing } from "../../platform/database/passing-faults.ts";
import { createEventLog } from "../../engine/events/log.ts";
import { openSubgraphs } from "../../engine/events/protocol/subgraphs.ts";
import { createInlineExecutor } from "../../engine/executors/inline.ts";
import { createHost } from "../../engine/executors/process/host.ts";
import type { FromGraphProcess, ToGraphProcess } from "../../engine/executors/process/messages.ts";
import { createLogConsole, logOrigin, createSdkLogger, SDK_LOGGER } from "../../graphs/logging.ts";
import { loadGraphs } from "../../graphs/graphs.ts";
import { registerOwnServer } from "../../graphs/own-server.ts";
import { createLogger, type Logger } from "../../platform/lib/logger.ts";
import { traceModules, type ModuleTrace } from "../../platform/lib/module-trace.ts";
import { openTerminal } from "../../platform/lib/terminal.ts";
import { isTelemetryConfigured, startTelemetry } from "../../platform/telemetry/sdk.ts";
import { activeTraceIds } from "../../platform/telemetry/telemetry.ts";
import { GraphLoadError, readGraphConfig } from "../../graphs/project/langgraph-json.ts";
import { createRunRepository } from "../../api/runs/repository.ts";
import { PostgresStore } from "../../api/store/postgres-store.ts";
import { StoreRepository } from "../../api/store/repository.ts";
import { openItems } from "../../api/store/semantic-search.ts";

/** The main process reads the log from this pipe, apart from what graphs print. */
const LOG_DESCRIPTOR = 4;
/** Per second; a process writes some hundred. */
const WRITES_REPORTED_AT_MOST = 2_000;
const WATCH = new URL("./main-process-watch.js", import.meta.url);
const WATCH_LIMITS = { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1 };

const sendToServer = process.send?.bind(process);
if (sendToServer === undefined)
  throw new Error("This program is started by a server, see docs/graph-processes.md.");
// Libraries that find `process.send` assume a process manager.
process.send = undefined;
const send = (message: FromGraphProcess): void => void sendToServer(message, undefined, {}, () => undefined);

// The main process has died. Its leases end, so other servers continue its runs.
process.on("disconnect", () => process.exit(0));
// A terminal sends Ctrl-C to all processes. The main process decides about the runs.
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => undefined);

/** Logs the run whose code ends this process, as far as LangGraph knows it. */
const logWhatNothingCaught = (logger: Logger): void => {
  process.on("unhandledRejection", (error) =>
    logger.error({ ...logOrigin(), err: markedOfGraph(error) }, "a rejection was not handled"),
  );
  process.on("uncaughtException", (error) => {
    logger.fatal(
      { ...logOrigin(), err: markedOfGraph(error) },
      "an exception was not caught in a graph process",
    );
    process.exit(1);
  });
};

const open = async ({ setup }: Extract<ToGraphProcess, { kind: "setup" }>) => {
  new Worker(WATCH, {
    workerData: { parent: process.ppid },
    execArgv: [],
    resourceLimits: WATCH_LIMITS,
  }).unref();
  const logger = createLogger({
    level: setup.logLevel,
    contents: setup.logContents,
    fields: isTelemetryConfigured(process.env) ? activeTraceIds : undefined,
    destination: openTerminal(LOG_DESCRIPTOR),
  });
  logWhatNothingCaught(logger);
  const telemetry = await startTelemetry(process.env, logger);
  Reflect.set(globalThis, SDK_LOGGER, createSdkLogger(logger));
  Object.assign(console, createLogConsole(logger));

  const { connectionString, schema, poolSize, preparedStatements, graphConfigFile, projectKeys } = setup;
  const database = openDatabase({
    connectionString,
    schema,
    poolSize,
    applicationName: "threadloom graphs",
    preparedStatements,
    encryption: setup.encryption,
    objects: await openObjectStore(setup.objectStore),
    logger,
  });
  const { storeExpiry, storeIndex } = await readGraphConfig(graphConfigFile, projectKeys);
  const repository = new StoreRepository(database);
  const items = await openItems({ database, repository, index: storeIndex, logger });
  const authorize = createAuthorize();
  const visibility = await authorize(THE_SERVER, "store", "search", { namespace: [] });
  const everyThread = await authorize(THE_SERVER, "threads", "read", {});
  let checkpointWrites: number[] = [];
  const checkpoints = createCheckpointStorage({
    database,
    valueCharactersAtMost: setup.stateValueCharactersAtMost,
    onWritten(seconds) {
      if (checkpointWrites.length < WRITES_REPORTED_AT_MOST) checkpointWrites.push(seconds);
    },
    logger,
  });
  const trace = setup.isReloading ? await traceModules() : undefined;
  const graphs = await loadGraphs({
    configPath: graphConfigFile,
    projectKeys,
    logger,
    checkpointer: checkpoints.saver,
    store: new PostgresStore({ repository, items, expiry: storeExpiry, visibility }),
  }).finally(() => trace && reportFiles(trace));
  const runs = createRunRepository(database);
  return createHost({
    executor: createInlineExecutor({
      graphs,
      checkpoints,
      interruptsOf: (threadId) => runs.interrupts(everyThread, threadId),
      openSubgraphsOf: (run) => openSubgraphs(createEventLog(database), run),
      recursionLimitMax: setup.recursionLimitMax,
      eventCharactersAtMost: setup.eventCharactersAtMost,
    }),
    send,
    isLoss: (error) => database.isLoss(error),
    residentBytes: () => process.memoryUsage.rss(),
    takeCheckpointWrites() {
      const taken = checkpointWrites;
      checkpointWrites = [];
      return taken;
    },
    onClose() {
      void Promise.allSettled([graphs.close(), database.close(), telemetry?.close()]).then(() =>
        process.exit(0),
      );
    },
  });
};

/** At most once per turn of the event loop: graphs load some files later. */
const reportFiles = (trace: ModuleTrace): void => {
  const report = (): void => send({ kind: "loaded", files: trace.files() });
  let isDue = false;
  report();
  trace.onMore(() => {
    if (isDue) return;
    isDue = true;
    setImmediate(() => {
      isDue = false;
      report();
    });
  });
};

/** This process serves only one server. */
const ownServer: { address?: string } = {};
registerOwnServer({ address: () => ownServer.address });

const onSetup = (message: Extract<ToGraphProcess, { kind: "setup" }>): void => {
  const opening = open(message);
  process.on("message", (next: ToGraphProcess) => {
    if (next.kind === "listening") ownServer.address = next.address;
    else
      opening.then(
        ({ receive }) => receive(next),
        // The handler below reports the error.
        () => undefined,
      );
  });
  opening.then(
    () => send({ kind: "ready" }),
    (error: unknown) => {
      if (message.setup.isReloading && error instanceof GraphLoadError)
        return send({ kind: "failed", message: error.message });
      // The stack says nothing about an unreachable database.
      const text = error instanceof Error ? (isPassing(error) ? error.message : error.stack) : undefined;
      process.stderr.write(`${text ?? String(error)}\n`);
      process.exit(1);
    },
  );
};
process.once("message", onSetup);
