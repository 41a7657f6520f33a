import { THE_SERVER } from "../../access/caller.ts";
import { createAssistantService, type AssistantService } from "../../api/assistants/service.ts";
import { checkpointNotFound } from "../../platform/domain/errors.ts";
import { assistantDefaults } from "../../graphs/project/assistant-defaults.ts";
import type { GraphEntry } from "../../graphs/project/langgraph-json.ts";
import type { RunEnd } from "../../engine/queue/attempts.ts";
import { createRunSearcher } from "../../api/runs/records/search.ts";
import { createRunService, type RunService } from "../../api/runs/service.ts";
import { createUsageService } from "../../api/usage/service.ts";
import { createStreamingService, type StreamingService } from "../../protocols/streaming/service.ts";
import { createThreadService, type ThreadService } from "../../api/threads/service.ts";
import { createDeliveryRepository } from "../../protocols/webhooks/repository.ts";
import { createWebhookService } from "../../protocols/webhooks/service.ts";
import { createUiService } from "../../protocols/ui/service.ts";
import type { ServerExecution } from "./execution.ts";
import type { Foundation } from "./foundation.ts";
import { pendingLimitsOf } from "./limits.ts";
import type { Webhooks } from "./webhooks.ts";
import { createDueCrons } from "../../api/crons/firing/due.ts";
import { createFiring } from "../../api/crons/firing/firing.ts";
import { createScheduler } from "../../api/crons/firing/scheduler.ts";
import { createCronRepository, createCronSearcher } from "../../api/crons/repository.ts";
import { createCronService } from "../../api/crons/service.ts";
import type { Worker } from "../../engine/worker/worker.ts";
import { createQueueRepository, createStatusRepository } from "../../api/status/repository.ts";
import { createQueueService, createStatusService } from "../../api/status/service.ts";
import { isTracingOn } from "../../graphs/lazy-run-trees.ts";
import { createA2aService } from "../../protocols/a2a/service.ts";
import { createAgUiService } from "../../protocols/agui/service.ts";
import { createCallService } from "../../protocols/calls/service.ts";
import { createMcpService } from "../../protocols/mcp/service.ts";

export const createServices = async (
  foundation: Foundation,
  execution: ServerExecution,
  webhooks: Webhooks,
  isReady: () => boolean,
) => {
  const { callerLimits, logger } = foundation;
  const { config, processId, authorize, database, signals, checkpoints, graphs } = foundation;
  const { store, threadExpiry } = foundation;
  const { runRepository, everyThread, ends, eventLog, traces, budgets, hub, endings, worker } = execution;

  const onThreadsDeleted = (threadIds: readonly string[], ended: readonly RunEnd[] = []): void => {
    worker.abandonThreads(threadIds);
    for (const end of ended) endings.publish(end);
  };
  const threads = createThreadService({
    database,
    authorize,
    checkpoints,
    onThreadsDeleted,
    readRoom: foundation.readRoom,
    logger,
    ends,
    graphs,
    defaultTtl: threadExpiry.defaultTtl,
  });

  const assistants = createAssistantService({
    database,
    authorize,
    graphs,
    deleteThreads: (caller, threadIds) => threads.upkeep.deleteMany(caller, threadIds),
    recursionLimitMax: config.recursionLimitMax,
  });
  const ensureSystemAssistants = async (entries: readonly GraphEntry[]): Promise<void> => {
    const defaults = assistantDefaults(entries, config.assistantConfigs);
    const revised = await assistants.ensureOfGraphs(THE_SERVER, graphs.ids, defaults);
    if (revised.length === 0) return;
    const text =
      "the assistants of these graphs have a new version, because their defaults in the deployment changed";
    logger.info({ graphs: revised }, text);
  };
  await ensureSystemAssistants(foundation.entries);

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
    traces,
    budgets,
    signals,
    processId,
    threadTtl: threadExpiry.defaultTtl,
    recursionLimitMax: config.recursionLimitMax,
    checkWebhook: webhooks.checkWebhook,
    takesRun: (caller) => callerLimits.takesRun(caller),
    pendingLimits: pendingLimitsOf(config, callerLimits.refusals),
    threads,
    checkpoints: {
      async assertExists(threadId, checkpointNs, checkpointId) {
        const found = await checkpoints.readAt(threadId, checkpointNs, checkpointId);
        if (found === undefined) throw checkpointNotFound(checkpointId);
      },
    },
  });

  const { crons, scheduler } = await createCrons(foundation, webhooks, runs, worker);
  const usage = createUsageService(authorize, database, foundation.usage.currency);
  const streaming = createStreamingService({ ...foundation, hub, eventLog, runs, threads });

  const callers = createCallers(foundation, { assistants, runs, threads }, webhooks.push);

  const ui = createUiService({
    config: foundation.ui,
    authorize,
    graphOf: async (caller, reference) => (await assistants.get(caller, reference)).graph_id,
    logger,
  });

  const deliveries = createWebhookService(
    authorize,
    createDeliveryRepository(database, webhooks.deliveries),
    () => webhooks.dispatcher?.wake(),
  );

  const { waiting, status } = createStatus(foundation, execution, webhooks, { streaming, isReady });
  return {
    assistants,
    threads,
    runs,
    crons,
    scheduler,
    streaming,
    usage,
    ...callers,
    store,
    ui,
    deliveries,
    waiting,
    status,
    onThreadsDeleted,
    ensureSystemAssistants,
  };
};

export type Services = Awaited<ReturnType<typeof createServices>>;

export const createCrons = async (
  foundation: Foundation,
  { checkWebhook }: Webhooks,
  runs: RunService,
  worker: Worker,
) => {
  const { config, database, authorize, graphs, faults, logger } = foundation;
  const run = {
    ...{ assistant_id: "", run_id: "", status: "pending" as const },
    ...{ metadata: {}, kwargs: {} },
  };
  const rights = {
    threads: await authorize(THE_SERVER, "threads", "create_run", run),
    assistants: await authorize(THE_SERVER, "assistants", "read", { assistant_id: "" }),
  };
  const due = createDueCrons(database, graphs.ids);
  const firing = createFiring({
    database,
    due,
    storeRuns: runs.storeScheduled,
    holdRuns: () => worker.hold(),
    rights,
    faults,
    logger,
  });
  const scheduler = createScheduler(firing, logger);
  const crons = createCronService({
    database,
    authorize,
    repository: createCronRepository(database),
    searcher: createCronSearcher(database),
    recursionLimitMax: config.recursionLimitMax,
    cronsPerCaller: config.cronsPerCaller,
    keyFactor: config.keyFactor,
    checkWebhook,
    onChanged: () => scheduler.wake(),
  });
  return { crons, scheduler };
};

/** `waiting`: what `/queue` shows. */
export const createStatus = (
  { callerLimits, config, database, lifecycle, metrics, processId }: Foundation,
  { graphProcesses, hosting, worker }: ServerExecution,
  webhooks: Webhooks,
  { streaming, isReady }: { streaming: Pick<StreamingService, "figures">; isReady: () => boolean },
) => {
  const slots = () => ({ max: config.role === "api" ? 0 : config.jobsPerWorker, active: worker.active });
  const waiting = createQueueService({
    repository: createQueueRepository(database),
    slots: () => (config.role === "api" ? undefined : { server_id: processId, ...slots() }),
  });
  const status = lifecycle.closing(
    createStatusService({
      database,
      repository: createStatusRepository(database),
      listUnhosted: () => hosting.listUnhosted(),
      readiness: () => (isReady() ? undefined : "is starting or stopping"),
      workers: slots,
      eventStreaming: () => streaming.figures(),
      deliveryTries: () => webhooks.dispatcher?.figures(),
      limits: () => callerLimits.figures(),
      graphProcesses: () => graphProcesses.figures(),
      counted: metrics,
      role: config.role,
      flags: { langsmith: isTracingOn(), langsmith_tracing_replicas: isTracingOn() },
    }),
  );
  return { waiting, status };
};

interface CalledServices {
  assistants: AssistantService;
  runs: RunService;
  threads: ThreadService;
}

/** The protocols by which other agents and apps call assistants. */
export const createCallers = (
  { access, authorize, database, graphs, mcp: config, threadExpiry, webhooks }: Foundation,
  { assistants, runs, threads }: CalledServices,
  push: Webhooks["push"],
) => {
  const calls = createCallService({ database, authorize, assistants, runs, threads });
  return {
    calls,
    a2a: createA2aService({
      calls,
      push: push && { ...push, config: webhooks },
      security: () => (access.isGuarded ? (access.security ?? {}) : undefined),
    }),
    agui: createAgUiService({ database, authorize, calls }),
    mcp: createMcpService({ calls, graphs, config, threadTtl: threadExpiry.defaultTtl }),
  };
};
