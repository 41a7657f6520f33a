import { THE_SERVER } from "../../access/caller.ts";
import { createAssistantService } from "../../api/assistants/service.ts";
import { checkpointNotFound } from "../../platform/domain/errors.ts";
import { assistantDefaults } from "../../graphs/project/assistant-defaults.ts";
import type { GraphEntry } from "../../graphs/project/langgraph-json.ts";
import type { RunEnd } from "../../engine/queue/attempts.ts";
import { createRunSearcher } from "../../api/runs/search.ts";
import { createRunService } from "../../api/runs/service.ts";
import { createUsageService } from "../../api/usage/service.ts";
import { createStreamingService, type StreamingService } from "../../protocols/streaming/service.ts";
import { createThreadService } from "../../api/threads/service.ts";
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
  const { authorize, callerLimits, checkpoints, config, database, graphs, logger, threadExpiry } = foundation;
  const { endings, worker } = execution;
  const { recursionLimitMax } = config;
  const defaultTtl = threadExpiry.defaultTtl;
  const parts = { ...foundation, ...execution };

  const onThreadsDeleted = (threadIds: readonly string[], ended: readonly RunEnd[] = []): void => {
    worker.abandonThreads(threadIds);
    for (const end of ended) endings.publish(end);
  };
  const threads = createThreadService({ ...parts, onThreadsDeleted, defaultTtl });

  const assistants = createAssistantService({
    ...{ database, authorize, graphs, recursionLimitMax },
    deleteThreads: (caller, threadIds) => threads.upkeep.deleteMany(caller, threadIds),
  });
  const ensureSystemAssistants = async (entries: readonly GraphEntry[]): Promise<void> => {
    const defaults = assistantDefaults(entries);
    const revised = await assistants.ensureOfGraphs(THE_SERVER, graphs.ids, defaults);
    if (revised.length === 0) return;
    const text =
      "the assistants of these graphs have a new version, because their defaults in the deployment changed";
    logger.info({ graphs: revised }, text);
  };
  await ensureSystemAssistants(foundation.entries);

  const runs = createRunService({
    ...parts,
    repository: execution.runRepository,
    searcher: createRunSearcher(database),
    threadTtl: defaultTtl,
    recursionLimitMax,
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

  const run = {
    ...{ assistant_id: "", run_id: "", status: "pending" as const },
    ...{ metadata: {}, kwargs: {} },
  };
  const firing = createFiring({
    ...parts,
    due: createDueCrons(database, graphs.ids),
    storeRuns: runs.storeScheduled,
    holdRuns: () => worker.hold(),
    rights: {
      threads: await authorize(THE_SERVER, "threads", "create_run", run),
      assistants: await authorize(THE_SERVER, "assistants", "read", { assistant_id: "" }),
    },
  });
  const scheduler = createScheduler(firing, logger);
  const crons = createCronService({
    ...config,
    ...{ database, authorize },
    repository: createCronRepository(database),
    searcher: createCronSearcher(database),
    checkWebhook: webhooks.checkWebhook,
    onChanged: () => scheduler.wake(),
  });

  const streaming = createStreamingService({ ...parts, runs, threads });
  const calls = createCallService({ database, authorize, assistants, runs, threads });
  const { access, mcp, ui } = foundation;
  return {
    ...{ assistants, threads, runs, crons, scheduler, streaming, calls },
    usage: createUsageService(authorize, database, foundation.usage.currency),
    // The protocols by which other agents and apps call assistants.
    a2a: createA2aService({
      calls,
      push: webhooks.push && { ...webhooks.push, config: foundation.webhooks },
      security: () => (access.isGuarded ? (access.security ?? {}) : undefined),
    }),
    agui: createAgUiService({ database, authorize, calls }),
    mcp: createMcpService({ calls, graphs, config: mcp, threadTtl: defaultTtl }),
    store: foundation.store,
    ui: createUiService({
      config: ui,
      authorize,
      graphOf: async (caller, reference) => (await assistants.get(caller, reference)).graph_id,
      logger,
    }),
    deliveries: createWebhookService(authorize, createDeliveryRepository(database, webhooks.deliveries), () =>
      webhooks.dispatcher?.wake(),
    ),
    ...createStatus(foundation, execution, webhooks, streaming, isReady),
    onThreadsDeleted,
    ensureSystemAssistants,
  };
};

export type Services = Awaited<ReturnType<typeof createServices>>;

/** `waiting`: what `/queue` shows. */
const createStatus = (
  { callerLimits, config, database, lifecycle, metrics, processId }: Foundation,
  { graphProcesses, hosting, worker }: ServerExecution,
  webhooks: Webhooks,
  streaming: Pick<StreamingService, "figures">,
  isReady: () => boolean,
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
