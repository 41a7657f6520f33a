import { THE_SERVER } from "../../access/caller.ts";
import { createAssistantService } from "../../api/assistants/service.ts";
import { checkpointNotFound } from "../../platform/domain/errors.ts";
import { assistantDefaults } from "../../graphs/project/assistant-defaults.ts";
import type { GraphEntry } from "../../graphs/project/langgraph-json.ts";
import type { RunEnd } from "../../engine/queue/attempts.ts";
import { createRunSearcher } from "../../api/runs/records/search.ts";
import { createRunService } from "../../api/runs/service.ts";
import { createUsageService } from "../../api/usage/service.ts";
import { createStreamingService } from "../../protocols/streaming/service.ts";
import { createThreadService } from "../../api/threads/service.ts";
import { createDeliveryRepository } from "../../protocols/webhooks/repository.ts";
import { createWebhookService } from "../../protocols/webhooks/service.ts";
import { createUiService } from "../../protocols/ui/service.ts";
import { createCallers } from "./callers.ts";
import { createCrons } from "./crons.ts";
import type { ServerExecution } from "./execution.ts";
import type { Foundation } from "./foundation.ts";
import { pendingLimitsOf } from "./limits.ts";
import { createStatus } from "./status.ts";
import type { Webhooks } from "./webhooks.ts";

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
  const streaming = createStreamingService({ database, authorize, hub, eventLog, signals, runs, threads });

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
