/**
 * A graph process: executes the graphs of runs for a main process, over connections of its own. The entry beside this
 * file loads it. It touches the process as main.ts does: it is the process around its part of the server.
 */
import { Worker } from "node:worker_threads";
import { createAuthorize } from "../access/authorize.ts";
import { THE_SERVER } from "../access/caller.ts";
import { createCheckpointStorage } from "../checkpoints/storage.ts";
import { openDatabase } from "../database/database.ts";
import { isPassing } from "../database/passing-faults.ts";
import { openCipher } from "../encryption/setup.ts";
import { createInlineExecutor } from "../engine/executors/inline.ts";
import { createHost } from "../engine/executors/process/host.ts";
import type { FromGraphProcess, ToGraphProcess } from "../engine/executors/process/messages.ts";
import { createLogConsole } from "../graphs/console.ts";
import { loadGraphs } from "../graphs/graphs.ts";
import { logOrigin } from "../graphs/log-origin.ts";
import { createSdkLogger, SDK_LOGGER } from "../graphs/sdk-logger.ts";
import { createLogger } from "../lib/logger.ts";
import { openTerminal } from "../lib/terminal.ts";
import { readGraphConfig } from "../project/langgraph-json.ts";
import { createRunRepository } from "../runs/repository.ts";
import { PostgresStore } from "../store/postgres-store.ts";
import { createStoreRepository } from "../store/repository.ts";
import { openItems } from "../store/semantic-search.ts";

/** The pipe that the main process reads the log from; what graphs write to standard output is something else. */
const LOG_DESCRIPTOR = 4;
const WATCH = new URL("./main-process-watch.js", import.meta.url);
/** The thread needs next to nothing. */
const WATCH_LIMITS = { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1 };

const tell = process.send?.bind(process);
if (tell === undefined)
  throw new Error("This program is started by a server, see the README on graph processes.");
// Libraries that find it think that they have been started by a process manager.
process.send = undefined;
const send = (message: FromGraphProcess): void => void tell(message, undefined, {}, () => undefined);

// The main process is gone, and with it the leases of what is executed here.
process.on("disconnect", () => process.exit(0));
// Ctrl-C at a terminal reaches each process; the main process says what becomes of the runs.
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => undefined);

const open = async ({ setup }: Extract<ToGraphProcess, { kind: "setup" }>) => {
  new Worker(WATCH, { workerData: process.ppid, execArgv: [], resourceLimits: WATCH_LIMITS }).unref();
  const logger = createLogger({
    level: setup.logLevel,
    destination: openTerminal(LOG_DESCRIPTOR),
  });
  process.on("unhandledRejection", (error) =>
    logger.error({ ...logOrigin(), err: error }, "a rejection was not handled"),
  );
  let isTold = false;
  process.on("uncaughtException", (error) => {
    logger.fatal({ ...logOrigin(), err: error }, "an exception was not caught in a graph process");
    isTold = true;
    process.exit(1);
  });
  // Among the runs that are lost with the process one has ended it: what called `process.exit` knows its run.
  process.on("exit", (code) => {
    const origin = logOrigin();
    if (!isTold && origin.run_id !== undefined)
      logger.error({ ...origin, code }, "a graph has ended its process");
  });
  // Both belong to the process, as this does.
  Reflect.set(globalThis, SDK_LOGGER, createSdkLogger(logger));
  Object.assign(console, createLogConsole(logger));

  const { connectionString, schema, poolSize, preparedStatements, graphConfigFile, projectKeys } = setup;
  const database = openDatabase({
    connectionString,
    schema,
    poolSize,
    applicationName: "threadloom graphs",
    preparedStatements,
    cipher: openCipher(setup.encryption),
    logger,
  });
  const { storeExpiry, storeIndex } = await readGraphConfig(graphConfigFile, projectKeys);
  const repository = createStoreRepository(database, database);
  const items = await openItems({ database, repository, index: storeIndex, logger });
  const authorize = createAuthorize();
  const visibility = await authorize(THE_SERVER, "store", "search", { namespace: [] });
  const everyThread = await authorize(THE_SERVER, "threads", "read", {});
  const checkpoints = createCheckpointStorage({
    database,
    valueCharactersAtMost: setup.stateValueCharactersAtMost,
    logger,
  });
  const graphs = await loadGraphs({
    configPath: graphConfigFile,
    projectKeys,
    logger,
    checkpointer: checkpoints.saver,
    store: new PostgresStore({ repository, items, expiry: storeExpiry, visibility }),
  });
  const runs = createRunRepository(database);
  return createHost({
    executor: createInlineExecutor({
      graphs,
      checkpoints,
      interruptsOf: (threadId) => runs.interrupts(everyThread, threadId),
      recursionLimitMax: setup.recursionLimitMax,
      eventCharactersAtMost: setup.eventCharactersAtMost,
    }),
    send,
    isLoss: (error) => database.isLoss(error),
    residentBytes: () => process.memoryUsage.rss(),
    onClose() {
      void Promise.allSettled([graphs.close(), items.close(), database.close()]).then(() => process.exit(0));
    },
  });
};

const onSetup = (message: Extract<ToGraphProcess, { kind: "setup" }>): void => {
  const opening = open(message);
  process.on("message", (next: ToGraphProcess) => void opening.then(({ receive }) => receive(next)));
  opening.then(
    () => send({ kind: "ready" }),
    (error: unknown) => {
      // Of a database that is away the message says all: the pool starts others until it is back.
      const told = error instanceof Error ? (isPassing(error) ? error.message : error.stack) : undefined;
      process.stderr.write(`${told ?? String(error)}\n`);
      process.exit(1);
    },
  );
};
process.once("message", onSetup);
