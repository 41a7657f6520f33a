/**
 * Uses environment, signals and exit. Imports LangChain dynamically: after the environment is complete, and beside the
 * slow start of the embedded PostgreSQL.
 */
import { markedOfGraph } from "../../platform/lib/contents.ts";
import { constants } from "node:os";
import { resolve } from "node:path";
import { callable, databaseName } from "../banner.ts";
import { ownEncryption, parseConfig, type Config } from "../../platform/config/config.ts";
import { graphConfigFileOf, mergeEnvironments, type Flags } from "../../platform/config/resolve.ts";
import { awaitDatabase } from "../../platform/database/awaiting.ts";
import type { EmbeddedPostgres } from "../../platform/database/embedded/embedded.ts";
import { isUnusable, unusableReason } from "../../platform/database/passing-faults.ts";
import { GraphLoadError, readGraphConfig, type GraphConfig } from "../../graphs/project/langgraph-json.ts";
import { projectKeysIn } from "../../platform/config/project-keys.ts";
import { StartError } from "../../platform/domain/errors.ts";
import { prettyLines } from "../../platform/lib/pretty-lines.ts";
import { createLogger, type Logger } from "../../platform/lib/logger.ts";
import { openTerminal } from "../../platform/lib/terminal.ts";
import { isTelemetryConfigured, startTelemetry, type TelemetrySdk } from "../../platform/telemetry/sdk.ts";
import { activeTraceIds } from "../../platform/telemetry/telemetry.ts";
import type { RunsLeft, Server } from "../../server/app/compose.ts";
import type { Development } from "../../server/app/foundation.ts";
import { exitCodeOf } from "../run-command.ts";
import { announce, assertPortIsFree, explainListening, logWarnings } from "./starting.ts";
import type { InDevelopment } from "./in-development.ts";

interface Opened {
  postgres?: EmbeddedPostgres;
  server?: Server;
  telemetry?: TelemetrySdk | undefined;
}

/** npm repeats the terminal's Ctrl-C, which must count once. */
const SAME_SIGNAL_MS = 1_000;
/** Added to the grace period of running runs. */
const CLOSE_SECONDS = 15;

/** Otherwise LangChain delivers tokens in the background, and a run can end before they arrive (337 of 600 lost). */
const CALLBACKS = { LANGCHAIN_CALLBACKS_BACKGROUND: "false" };

/** Variables that are set win. */
const loadEnvironment = ({ environment }: GraphConfig): void =>
  void Object.assign(process.env, mergeEnvironments(CALLBACKS, environment, process.env));

const explain = (error: unknown, config: Config): unknown => {
  if (error instanceof Error && "syscall" in error && error.syscall === "listen")
    return explainListening(error, config);
  if (config.databaseUrl === undefined || !isUnusable(error)) return error;
  const reason = unusableReason(error);
  return new StartError(`The database at ${databaseName(config.databaseUrl)} can't be used: ${reason}.`);
};

const open = async (
  config: Config,
  logger: Logger,
  opened: Opened,
  development: Development | undefined,
  signal: AbortSignal,
): Promise<string> => {
  await assertPortIsFree(config);
  // Before the graphs, which may ask for tracers while they load.
  opened.telemetry = await startTelemetry(process.env, logger);
  const startPostgres = async (): Promise<string> => {
    if (config.databaseUrl !== undefined) {
      const { databaseUrl, databaseDirectUrl = databaseUrl, databaseWaitSeconds: seconds } = config;
      for (const connectionString of new Set([databaseUrl, databaseDirectUrl])) {
        const name = databaseName(connectionString);
        await awaitDatabase({ connectionString, name, seconds, signal, logger });
      }
      return config.databaseUrl;
    }
    const { startEmbeddedPostgres } = await import("../../platform/database/embedded/embedded.ts");
    opened.postgres = await startEmbeddedPostgres({ dataFolder: resolve(config.dataFolder), logger });
    return opened.postgres.connectionString;
  };
  // Waits for all: a PostgreSQL that comes up after a failure would be left running.
  const [database, module, logging] = await Promise.allSettled([
    startPostgres(),
    import("../../server/app/compose.ts"),
    import("../../graphs/logging.ts"),
  ]);
  if (database.status === "rejected") throw database.reason;
  if (module.status === "rejected") throw module.reason;
  if (logging.status === "rejected") throw logging.reason;
  // The SDK reads its logger only from globalThis, which this process owns. Graphs use it while they load.
  Reflect.set(globalThis, logging.value.SDK_LOGGER, logging.value.createSdkLogger(logger));
  Object.assign(console, logging.value.createLogConsole(logger));
  opened.server = await module.value.createServer(config, {
    connectionString: database.value,
    logger,
    endsBlockedProcess: true,
    environment: process.env,
    development,
    signal,
  });
  return (await opened.server.listen({ readsAhead: true, signal })).address;
};

interface Ending {
  exitCode: number;
  /** For a restart of `dev`. A signal resets this. */
  restarts: boolean;
}

/** Each part closes even if another fails. */
const close = async (
  { server, postgres, telemetry }: Opened,
  failed = false,
): Promise<RunsLeft | undefined> => {
  try {
    return await server?.close({ failed });
  } finally {
    await telemetry?.close();
    await postgres?.close();
  }
};

const main = async (flags: Flags, development: InDevelopment | undefined): Promise<void> => {
  const configFile = graphConfigFileOf(process.env, flags.graphConfigFile);
  loadEnvironment(await readGraphConfig(configFile, projectKeysIn(process.env)));
  const environment = mergeEnvironments(development?.defaults ?? {}, process.env);
  const config = parseConfig(flags, environment, { terminal: process.stdout.isTTY === true });
  // Read again, because `env` may have set variables that change other keys.
  const project = await readGraphConfig(config.graphConfigFile, config.projectKeys);
  // Graphs must not see the keys.
  delete process.env["LANGGRAPH_AES_KEY"];
  if (project.namesEncryption) throw ownEncryption(`encryption of ${project.path}`);
  const pretty = config.logFormat === "pretty";
  // `dev` stops when its reader is gone (`| head`); a server continues.
  const onUnread = (): void => void (development !== undefined && setImmediate(() => void stop(0)));
  for (const stream of [process.stdout, process.stderr]) stream.on("error", onUnread);
  const terminal = openTerminal(process.stdout.fd, onUnread);
  const logger = createLogger({
    level: config.logLevel,
    contents: config.logContents,
    fields: isTelemetryConfigured(process.env) ? activeTraceIds : undefined,
    destination: pretty ? prettyLines(terminal, { printsPlainly: development !== undefined }) : terminal,
  });
  logWarnings({
    project,
    config,
    environment: process.env,
    namesFolder: flags.dataFolder !== undefined,
    logger,
  });
  const opened: Opened = {};
  const leaving = new AbortController();
  let stopping = false;
  let isClosed = false;
  let firstSignalAt = 0;
  let ending: Ending | undefined;

  const stop = async (exitCode: number, { failed = false, restarts = false } = {}): Promise<void> => {
    if (stopping) return;
    stopping = true;
    const own = (ending = { exitCode, restarts });
    leaving.abort();
    setTimeout(
      () => {
        logger.fatal(`${opened.server === undefined ? "giving up the start" : "closing"} took too long`);
        process.exit(1);
      },
      (config.shutdownGraceSeconds + CLOSE_SECONDS) * 1000,
    );
    try {
      await starting.catch(() => undefined); // then closes what it has opened
      const left = await close(opened, failed);
      isClosed = true;
      logger.info({ ...left }, "stopped");
      process.exit(own.exitCode);
    } catch (error) {
      logger.fatal({ err: error }, "closing failed");
      process.exit(1);
    }
  };
  const onSignal = (signal: NodeJS.Signals): void => {
    const restarts = ending?.restarts === true;
    if (stopping && !restarts && Date.now() - firstSignalAt > SAME_SIGNAL_MS)
      process.exit(128 + constants.signals[signal]);
    if (stopping && !restarts) return;
    if (ending !== undefined) Object.assign(ending, { exitCode: 0, restarts: false });
    firstSignalAt = Date.now();
    logger.info({ signal }, "stopping; a second signal stops at once");
    void stop(0);
  };
  const runsInHand = (): readonly string[] => opened.server?.runsInHand() ?? [];
  // SIGHUP: the terminal was closed.
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, onSignal);
  // Only synchronous work is possible here.
  process.on("exit", (code) => {
    if (isClosed) return;
    const runs = runsInHand();
    const next = runs.length === 0 ? "" : "; a server that runs or starts goes on with its runs";
    logger.fatal({ code, runs }, `the process exits although not everything is closed${next}`);
  });
  // A graph that forgets to await a promise must not end the runs of all others.
  process.on("unhandledRejection", (error) =>
    logger.error({ err: markedOfGraph(error) }, "a rejection was not handled"),
  );
  // The state of the process is unknown after this. Its runs continue on other servers.
  process.on("uncaughtException", (error) => {
    if (stopping) return logger.debug({ err: markedOfGraph(error) }, "another exception was not caught");
    logger.fatal({ err: markedOfGraph(error), runs: runsInHand() }, "an exception was not caught; stopping");
    void stop(1, { failed: true });
  });

  const starting = open(config, logger, opened, development?.parts, leaving.signal);
  try {
    const address = await starting;
    if (stopping) return;
    const embeddedFolder = opened.postgres?.dataFolder;
    const write = (text: string): void => void process.stdout.write(text);
    announce({ config, address, embeddedFolder, server: opened.server, logger, write });
    if (opened.server !== undefined) {
      development?.started({
        server: opened.server,
        consoleAddress: opened.server.hasConsole ? `${callable(address)}/console` : undefined,
        config,
        project,
        logger,
        isStopping: () => stopping,
        stopForNext: (exitCode) => void stop(exitCode, { restarts: true }),
      });
    }
  } catch (error) {
    if (stopping) return;
    stopping = true;
    try {
      await close(opened);
      isClosed = true;
    } catch (closeError) {
      logger.error({ err: closeError }, "closing failed");
    }
    throw explain(error, config);
  }
};

export const failureText = (error: unknown): string => {
  const plain = error instanceof StartError || error instanceof GraphLoadError;
  return plain ? error.message : error instanceof Error ? (error.stack ?? error.message) : String(error);
};

const fail = (error: unknown): void => {
  process.stderr.write(`threadloom: ${failureText(error)}\n`);
  process.exit(exitCodeOf(error));
};

/** Runs until a signal ends the process. */
export const serve = (flags: Flags, development?: InDevelopment): Promise<void> =>
  main(flags, development).catch(development?.failed ?? fail);
