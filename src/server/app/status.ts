import { createQueueRepository, createStatusRepository } from "../../api/status/repository.ts";
import { createQueueService, createStatusService } from "../../api/status/service.ts";
import type { StreamingService } from "../../protocols/streaming/service.ts";
import { isTracingOn } from "../../graphs/lazy-run-trees.ts";
import type { ServerExecution } from "./execution.ts";
import type { Foundation } from "./foundation.ts";
import type { Webhooks } from "./webhooks.ts";

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
