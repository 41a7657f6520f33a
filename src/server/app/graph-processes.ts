import { availableParallelism } from "node:os";
import type { Config } from "../../platform/config/config.ts";
import type { GraphExecutor } from "../../engine/executors/executor.ts";
import { encryptionOf } from "../../platform/config/options.ts";
import { objectStoreOf } from "../../platform/config/options.ts";
import { createInlineExecutor, type InlineExecutorParts } from "../../engine/executors/inline.ts";
import { GraphProcesses } from "../../engine/executors/process/pool.ts";
import { BYTES_PER_MEGABYTE } from "../../platform/config/option.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { untilAborted } from "../../platform/lib/until-aborted.ts";
import { within } from "../../platform/lib/within.ts";

const ENTRY = new URL("./graph-process-entry.js", import.meta.url);
/** Without a spare, the runs of a lost process wait for a start, which takes a second of CPU (decision 024). */
const SPARES = 1;
/** One for checkpoint writes, one for reads. */
const CONNECTIONS_AT_LEAST = 2;
/** Two searches may take their whole time. */
const MAIN_CONNECTIONS_AT_LEAST = 4;

/** Less than the start time of our images' HEALTHCHECK: 20 s and three failures. */
const LOADED_WITHIN_MS = 20_000;

interface GraphProcessPlan {
  processes: number;
  mainPoolSize: number;
  poolSize: number;
}

/** The spare needs connections, too: it replaces a process or executes a run alone. */
export const planGraphProcesses = (
  { graphProcesses, databasePoolSize, role }: Pick<Config, "graphProcesses" | "databasePoolSize" | "role">,
  cores = availableParallelism(),
): GraphProcessPlan => {
  const wanted = graphProcesses === "auto" ? Math.max(1, cores - 1) : graphProcesses;
  const processes = role === "api" ? 0 : wanted;
  if (processes === 0) return { processes, mainPoolSize: databasePoolSize, poolSize: CONNECTIONS_AT_LEAST };
  const poolSize = Math.max(CONNECTIONS_AT_LEAST, Math.floor(databasePoolSize / (processes + 2)));
  const mainPoolSize = Math.max(MAIN_CONNECTIONS_AT_LEAST, databasePoolSize - poolSize * (processes + 1));
  return { processes, mainPoolSize, poolSize };
};

const poolWarning = (
  { databasePoolSize, graphProcesses }: Config,
  plan: GraphProcessPlan,
): string | undefined => {
  const { processes, mainPoolSize, poolSize } = plan;
  const connections = mainPoolSize + poolSize * (processes + 1);
  if (connections <= databasePoolSize) return undefined;
  return (
    `WORKERS=${graphProcesses} is ${processes} graph processes, which hold up to ${connections} database connections with ` +
    `the server, though DATABASE_POOL_SIZE is ${databasePoolSize}: raise it, or start fewer processes`
  );
};

export interface GraphExecutorParts extends Omit<
  InlineExecutorParts,
  "recursionLimitMax" | "eventCharactersAtMost"
> {
  connectionString: string;
  /** Development only. */
  onFiles: ((files: readonly string[]) => void) | undefined;
  onCheckpointsWritten: (seconds: number) => void;
  logger: Logger;
}

export const openGraphExecutor = (
  config: Config,
  { connectionString, onFiles, onCheckpointsWritten, logger, ...parts }: GraphExecutorParts,
): { graphExecutor: GraphExecutor; graphProcesses: GraphProcesses } => {
  const plan = planGraphProcesses(config);
  const { processes, poolSize } = plan;
  const { recursionLimitMax, eventCharactersAtMost, graphProcessResidentBytes, graphProcessHeapMegabytes } =
    config;
  const warning = processes === 0 ? undefined : poolWarning(config, plan);
  if (warning !== undefined) logger.warn(warning);
  const graphProcesses = new GraphProcesses({
    processes,
    // In development a spare would have loaded the code before the change.
    spares: processes === 0 || onFiles !== undefined ? 0 : SPARES,
    onFiles,
    onCheckpointsWritten,
    entry: ENTRY,
    setup: {
      connectionString,
      schema: config.databaseSchema,
      preparedStatements: config.databasePreparedStatements,
      poolSize,
      graphConfigFile: config.graphConfigFile,
      projectKeys: config.projectKeys,
      recursionLimitMax,
      eventCharactersAtMost,
      stateValueCharactersAtMost: config.stateValueCharactersAtMost,
      logLevel: config.logLevel,
      logContents: config.logContents,
      encryption: encryptionOf(config),
      objectStore: objectStoreOf(config),
      isReloading: onFiles !== undefined,
    },
    heapMegabytes: graphProcessHeapMegabytes,
    blockedSeconds: config.blockedLoopSeconds,
    runsAtMost: config.graphProcessRuns,
    residentBytesAtMost: graphProcessResidentBytes,
    // The heap may fill in a process that was about to be replaced.
    residentBytesKilled: graphProcessResidentBytes + graphProcessHeapMegabytes * BYTES_PER_MEGABYTE,
    logger,
  });
  if (processes > 0) return { graphExecutor: graphProcesses, graphProcesses };
  const inline = createInlineExecutor({ ...parts, recursionLimitMax, eventCharactersAtMost });
  const graphExecutor: GraphExecutor = {
    get aloneAtMost() {
      return graphProcesses.aloneAtMost;
    },
    execute: (run, sink, options) => (options.isAlone ? graphProcesses : inline).execute(run, sink, options),
  };
  return { graphExecutor, graphProcesses };
};

/** A graph that never loads must not block the API. The log names such a graph. */
export const awaitLoaded = async (
  graphProcesses: Pick<GraphProcesses, "loaded">,
  { forMs = LOADED_WITHIN_MS, signal, logger }: { forMs?: number; signal?: AbortSignal; logger: Logger },
): Promise<void> => {
  const loaded = graphProcesses.loaded.catch(() => undefined);
  await within(forMs, untilAborted(signal, loaded)).catch(() => {
    if (signal?.aborted === true) return;
    logger.warn(
      `no graph process has loaded the graphs within ${forMs / 1_000} seconds: the server accepts requests, and runs wait`,
    );
  });
};
