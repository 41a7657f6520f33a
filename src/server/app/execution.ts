import { THE_SERVER } from "../../access/caller.ts";
import { createExecutor } from "../../engine/attempt/execution.ts";
import { createEndings } from "../../engine/endings.ts";
import { createHeartbeat } from "../../engine/lease/heartbeat.ts";
import { startRecovery } from "../../engine/recovery.ts";
import { createWorker } from "../../engine/worker/worker.ts";
import { createHub } from "../../engine/events/hub.ts";
import { createEventLog } from "../../engine/events/log.ts";
import { openSubgraphs } from "../../engine/events/protocol/open-subgraphs.ts";
import { createTurns } from "../../engine/events/turns.ts";
import { withinBudgets, createBudgets } from "../../engine/traces/budgets.ts";
import { createTraceStorage } from "../../engine/traces/storage.ts";
import { costOf } from "../../graphs/project/usage.ts";
import { createRunEnds } from "../../engine/queue/ending.ts";
import { storeAttemptRecords } from "../../engine/queue/sql/store-records.ts";
import { openHosting } from "../../engine/queue/hosting.ts";
import { createQueue } from "../../engine/queue/queue.ts";
import { noteUnlogged } from "../../engine/queue/sql/note-unlogged.ts";
import { createRunRepository } from "../../api/runs/repository.ts";
import type { Foundation } from "./foundation.ts";
import { openGraphExecutor } from "./graph-processes.ts";
import type { Webhooks } from "./webhooks.ts";

/** Takes no run before `worker.open()`. */
export const openExecution = async (
  foundation: Foundation,
  webhooks: Pick<Webhooks, "recordEnds" | "recordPushes" | "outbox">,
) => {
  const { development, endsBlockedProcess, faults, readRoom, lifecycle, logger } = foundation;
  const { config, connectionString, processId, authorize } = foundation;
  const { database, signals, checkpoints, graphs, metrics, telemetry, usage } = foundation;
  const runRepository = createRunRepository(database);
  const everyThread = await authorize(THE_SERVER, "threads", "read", {});
  const ends = createRunEnds(database, checkpoints, webhooks.recordEnds, webhooks.recordPushes);
  const queue = createQueue(database, {
    ...config,
    graphIds: graphs.ids,
    runningLimits: {
      perCaller: config.runningRunsPerCaller,
      keyFactor: config.keyFactor,
      byGraph: config.runningRunsByGraph,
    },
  });
  const traces = createTraceStorage(database);
  const budgets =
    usage.budgets.length === 0 ? undefined : createBudgets(database, usage.budgets, usage.currency);
  const eventLog = createEventLog(database, metrics.eventsLogged);
  const hub = lifecycle.closing(
    createHub({
      eventLog,
      readRoom,
      turns: createTurns(database),
      signals,
      processId,
      phaseOf: (run) => runRepository.phaseOf(run, processId),
      noteUnlogged: (source) => noteUnlogged(database, source),
      faults,
      logger,
    }),
  );
  const endings = lifecycle.closing(createEndings(signals, webhooks.outbox, metrics, logger));
  // After the graphs, so that only this process reports an invalid graph.
  const { graphExecutor, graphProcesses } = openGraphExecutor(config, {
    connectionString,
    onFiles: development && ((files) => development.onFiles(files)),
    onCheckpointsWritten: metrics.checkpointsWritten,
    graphs,
    checkpoints,
    interruptsOf: (threadId) => runRepository.interrupts(everyThread, threadId),
    openSubgraphsOf: (run) => openSubgraphs(eventLog, run),
    logger,
  });
  lifecycle.closing(graphProcesses);
  const executor = createExecutor({
    database,
    queue,
    ends,
    outbox: webhooks.outbox,
    graphs,
    checkpoints,
    graphExecutor: budgets === undefined ? graphExecutor : withinBudgets(graphExecutor, budgets),
    hub,
    eventLog,
    processId,
    timeoutSecondsOf: () => config.runTimeoutSeconds,
    traces: config.traces,
    costOf: (used) => costOf(usage, used),
    store: (attempt, records) => storeAttemptRecords(database, attempt, records),
    faults,
    metrics,
    telemetry,
    logger,
  });
  const heartbeat = lifecycle.closing(
    createHeartbeat({
      queue,
      onReadElsewhere: hub.logFor,
      shared: database,
      connectionString,
      schema: config.databaseSchema,
      preparedStatements: config.databasePreparedStatements,
      leaseSeconds: config.leaseSeconds,
      heartbeatSeconds: config.heartbeatSeconds,
      blockedLoopSeconds: config.blockedLoopSeconds,
      endsBlockedProcess,
      logger,
    }),
  );
  const workerOptions = {
    queue,
    executor,
    signals,
    endings,
    processId,
    concurrency: config.role === "api" ? 0 : config.jobsPerWorker,
    leaseSeconds: config.leaseSeconds,
    heartbeat,
    onDeliveriesDue: () => webhooks.outbox?.onRecorded(),
    faults,
    logger,
  };
  const worker = createWorker(workerOptions);
  const graphIds = config.role === "api" ? undefined : graphs.ids;
  const hosting = lifecycle.closing(await openHosting(database, processId, graphIds, logger));
  lifecycle.closing(startRecovery({ ...workerOptions, metrics }, config.sweepSeconds));
  return {
    runRepository,
    everyThread,
    ends,
    queue,
    eventLog,
    traces,
    budgets,
    hub,
    endings,
    worker,
    hosting,
    graphProcesses,
  };
};

export type ServerExecution = Awaited<ReturnType<typeof openExecution>>;
