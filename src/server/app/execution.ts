import { THE_SERVER } from "../../access/caller.ts";
import { createExecutor } from "../../engine/attempt/execution.ts";
import { createEndings } from "../../engine/endings.ts";
import { createHeartbeat } from "../../engine/lease/heartbeat.ts";
import { startRecovery } from "../../engine/recovery.ts";
import { createWorker } from "../../engine/worker/worker.ts";
import { Hub } from "../../engine/events/hub.ts";
import { createEventLog } from "../../engine/events/log.ts";
import { openSubgraphs } from "../../engine/events/protocol/subgraphs.ts";
import { createTurns } from "../../engine/events/readers/thread-reader.ts";
import { withinBudgets, createBudgets } from "../../engine/traces/budgets.ts";
import { createTraceStorage } from "../../engine/traces/storage.ts";
import { costOf } from "../../graphs/project/usage.ts";
import { createRunEnds } from "../../engine/queue/ending.ts";
import { storeAttemptRecords } from "../../engine/queue/sql/store-records.ts";
import { openHosting } from "../../engine/queue/hosting.ts";
import { createQueue } from "../../engine/queue/queue.ts";
import { createRunRepository } from "../../api/runs/repository.ts";
import type { Foundation } from "./foundation.ts";
import { openGraphExecutor } from "./graph-processes.ts";
import type { Webhooks } from "./webhooks.ts";

/** Takes no run before `worker.open()`. */
export const openExecution = async (
  foundation: Foundation,
  webhooks: Pick<Webhooks, "recordEnds" | "recordPushes" | "outbox">,
) => {
  const { authorize, checkpoints, config, database, development, graphs, lifecycle, logger } = foundation;
  const { connectionString, metrics, processId, signals, usage } = foundation;
  const { outbox } = webhooks;
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
  const budgets =
    usage.budgets.length === 0 ? undefined : createBudgets(database, usage.budgets, usage.currency);
  const eventLog = createEventLog(database, metrics.eventsLogged);
  const hub = lifecycle.closing(
    new Hub({
      ...foundation,
      eventLog,
      turns: createTurns(database),
      phaseOf: (run) => runRepository.phaseOf(run, processId),
    }),
  );
  const endings = lifecycle.closing(createEndings(signals, outbox, metrics, logger));
  // After the graphs, so that only this process reports an invalid graph.
  const { graphExecutor, graphProcesses } = openGraphExecutor(config, {
    ...{ connectionString, graphs, checkpoints, logger },
    onFiles: development && ((files) => development.onFiles(files)),
    onCheckpointsWritten: metrics.checkpointsWritten,
    interruptsOf: (threadId) => runRepository.interrupts(everyThread, threadId),
    openSubgraphsOf: (run) => openSubgraphs(eventLog, run),
  });
  lifecycle.closing(graphProcesses);
  const executor = createExecutor({
    ...foundation,
    ...{ queue, ends, outbox, hub, eventLog },
    graphExecutor: budgets === undefined ? graphExecutor : withinBudgets(graphExecutor, budgets),
    timeoutSecondsOf: () => config.runTimeoutSeconds,
    traces: config.traces,
    costOf: (used) => costOf(usage, used),
    store: (attempt, records) => storeAttemptRecords(database, attempt, records),
  });
  const heartbeat = lifecycle.closing(
    createHeartbeat({
      ...config,
      queue,
      onReadElsewhere: (runId) => hub.logFor(runId),
      shared: database,
      connectionString,
      schema: config.databaseSchema,
      preparedStatements: config.databasePreparedStatements,
      endsBlockedProcess: foundation.endsBlockedProcess,
      logger,
    }),
  );
  const workerOptions = {
    ...{ queue, executor, signals, endings, processId, heartbeat, logger },
    faults: foundation.faults,
    concurrency: config.role === "api" ? 0 : config.jobsPerWorker,
    leaseSeconds: config.leaseSeconds,
    onDeliveriesDue: () => outbox?.onRecorded(),
  };
  const worker = createWorker(workerOptions);
  const graphIds = config.role === "api" ? undefined : graphs.ids;
  const hosting = lifecycle.closing(await openHosting(database, processId, graphIds, logger));
  lifecycle.closing(startRecovery({ ...workerOptions, metrics }, config.sweepSeconds));
  return {
    ...{ runRepository, everyThread, ends, queue, eventLog, budgets, hub, endings, worker, hosting },
    ...{ graphProcesses, traces: createTraceStorage(database) },
  };
};

export type ServerExecution = Awaited<ReturnType<typeof openExecution>>;
