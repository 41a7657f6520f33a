import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { createReauthorization } from "../../access/reauthorization.ts";
import { THE_SERVER } from "../../access/caller.ts";
import { createAssistantRoutes } from "../../api/assistants/routes.ts";
import { createConsoleRoutes } from "../console/routes.ts";
import { createCronRoutes } from "../../api/crons/routes.ts";
import { isLoopback, type Config } from "../../platform/config/config.ts";
import { createApp } from "../../http/app.ts";
import { createSiteCheck, originsOf } from "../../http/sites.ts";
import type { AroundApi, RoutePlugin } from "../../http/route-plugin.ts";
import { signInOf } from "../../http/sign-in.ts";
import { systemAssistantId } from "../../platform/domain/assistant-ids.ts";
import type { ApiPart } from "../../graphs/project/http.ts";
import { createUsageRoutes } from "../../api/usage/routes.ts";
import { createRunRoutes } from "../../api/runs/routes.ts";
import { createQueueRoutes, createStatusRoutes } from "../../api/status/routes.ts";
import { createStoreRoutes } from "../../api/store/routes.ts";
import { createA2aRoutes } from "../../protocols/a2a/routes.ts";
import { createAgUiRoutes } from "../../protocols/agui/routes.ts";
import { createMcpRoutes } from "../../protocols/mcp/routes.ts";
import { createStreamingRoutes, createThreadStreamRoutes } from "../../protocols/streaming/routes.ts";
import { createThreadRoutes } from "../../api/threads/routes.ts";
import { createUiRoutes } from "../../protocols/ui/routes.ts";
import { createWebhookRoutes } from "../../protocols/webhooks/routes.ts";
import { openExecution, type ServerExecution } from "./execution.ts";
import { awaitLoaded } from "./graph-processes.ts";
import { openFoundation, type Foundation, type ServerParts } from "./foundation.ts";
import { connectionLimitsOf, failedLoginsOf } from "./limits.ts";
import { readGraphConfig } from "../../graphs/project/langgraph-json.ts";
import { createLifecycle, type Lifecycle } from "./lifecycle.ts";
import { createServices, type Services } from "./services.ts";
import { createWebhooks } from "./webhooks.ts";
import { putAroundApi } from "../custom-app/around-api.ts";
import { loadCustomApp } from "../custom-app/application.ts";
import { registerOwnServer } from "../../graphs/own-server.ts";
import { createEventLog, startEventRetention } from "../../engine/events/log.ts";
import { createTraceStorage, startTraceRetention } from "../../engine/traces/storage.ts";
import { createDeliveries } from "../../engine/outbox/deliveries.ts";
import { startOutboxRetention } from "../../engine/outbox/dispatcher.ts";
import { startItemExpiry } from "../../api/store/service.ts";
import { startRetention } from "../../api/threads/retention.ts";
import { startMovingContents } from "../../state/checkpoints/object-sweeps.ts";
import { startThreadlessSweep } from "../../api/threads/upkeep.ts";

const RUNS_NAMED = 10;

export const apiRoutes = (
  config: Pick<Config, "bodyElementsAtMost">,
  services: Services,
  disabled: ReadonlySet<ApiPart>,
): RoutePlugin[] => {
  const { streaming } = services;
  const routes: [parts: ApiPart[], routes: RoutePlugin][] = [
    [["assistants"], createAssistantRoutes(services.assistants)],
    [["threads"], createThreadRoutes(services.threads)],
    [["threads"], createThreadStreamRoutes(streaming.joining)],
    [["runs"], createRunRoutes(services.runs)],
    [["runs"], createCronRoutes(services.crons)],
    [["runs"], createUsageRoutes(services.usage)],
    // Event streaming starts runs and reads threads.
    [["threads", "runs"], createStreamingRoutes(streaming, config.bodyElementsAtMost)],
    [["runs", "meta"], createQueueRoutes(services.waiting)],
    [["store"], createStoreRoutes(services.store)],
    [["webhooks"], createWebhookRoutes(services.deliveries)],
    [["ui"], createUiRoutes(services.ui)],
    [["mcp"], createMcpRoutes(services.mcp)],
    [["a2a"], createA2aRoutes(services.a2a)],
    [["agui"], createAgUiRoutes(services.agui)],
  ];
  return routes.flatMap(([parts, plugin]) => (parts.some((part) => disabled.has(part)) ? [] : [plugin]));
};

/** `called` differs from `listening` for "all addresses", which clients can't connect to. */
const addressesOf = ({ address, port }: AddressInfo): { listening: string; called: string } => {
  const urlOf = (host: string): string => `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
  const called = address === "0.0.0.0" ? "127.0.0.1" : address === "::" ? "::1" : address;
  return { listening: urlOf(address), called: urlOf(called) };
};

/** An open server shows the console only to its own machine. */
const isConsoleOffered = ({ access, config }: Foundation): boolean =>
  access.isGuarded || isLoopback(config.host);

/** A worker only answers health probes and executes runs. */
const createServerApp = (
  foundation: Foundation,
  services: Services,
  around: AroundApi | undefined,
): Promise<FastifyInstance> => {
  const { access, callerLimits, config, http, logger, readRoom } = foundation;
  const hasKeys = (): boolean => access.isGuarded;
  const origins = originsOf({ named: config.corsAllowOrigins, rules: http.cors, hasKeys });
  const signIn = signInOf(access.security?.securitySchemes);
  const consoleRoutes = createConsoleRoutes(signIn, () => isConsoleOffered(foundation));
  return createApp({
    logger,
    readRoom,
    metrics: foundation.metrics,
    exportsSpans: foundation.telemetry !== undefined,
    authenticate: access.authenticate,
    security: access.security,
    bodyLimits: { bytes: config.bodyLimitBytes, elements: config.bodyElementsAtMost },
    connectionLimits: connectionLimitsOf(config),
    callerLimits,
    holdAccess: createReauthorization({ ...access, everyMs: config.accessCheckSeconds * 1_000, logger }),
    failedLogins: failedLoginsOf(config, callerLimits.refusals),
    trustedProxies: config.trustedProxies,
    cors: { origins, rules: http.cors },
    rules: http,
    refusesOwnWebhooks: foundation.webhooks.refusesApi,
    around,
    socketsSettled: () => services.streaming.settled(),
    siteCheck: createSiteCheck({ ...config, origins, hasKeys, logger }),
    routes: [
      createStatusRoutes(services.status, { meta: !http.disabled.has("meta") }),
      ...(config.role === "worker" ? [] : apiRoutes(config, services, http.disabled)),
      ...(config.role === "worker" || http.disabled.has("ui") ? [] : [consoleRoutes]),
    ],
  });
};

const build = async (config: Config, parts: ServerParts, lifecycle: Lifecycle) => {
  let phase: "starting" | "ready" | "closing" = "starting";
  const own: { address?: string; apiAddress?: string } = {};
  const hasApi = config.role !== "worker";
  // Before graphs are loaded, because they may create a client.
  if (hasApi) lifecycle.closing(registerOwnServer({ address: () => own.apiAddress }));
  const foundation = await openFoundation(config, parts, lifecycle);
  const { access, graphs, http, logger } = foundation;
  const webhooks = createWebhooks(foundation, {
    ownAddress: () => own.address,
    sendPush: (push, signal) => services.a2a.sendPush(push, signal),
  });
  const execution = await openExecution(foundation, webhooks);
  const isReady = (): boolean => phase === "ready";
  const services = await createServices(foundation, execution, webhooks, isReady);
  startSweeps(foundation, execution, services);
  if (hasApi) services.ui.prepare();
  const around =
    http.app === undefined || !hasApi
      ? undefined
      : putAroundApi(await loadCustomApp(http.app, logger), http, config.bodyLimitBytes);
  const app = lifecycle.closing(await createServerApp(foundation, services, around));
  // The dispatcher closes after the runs, because it receives their ends, and before the routes, because some receive
  // webhooks.
  if (webhooks.dispatcher !== undefined) lifecycle.closing(webhooks.dispatcher);
  const { worker } = execution;
  // Closes before the routes, so that runs end or are handed back while their readers are connected.
  let left: RunsLeft = {};
  lifecycle.onClose(async (options) => {
    const { ended, handedBack } = await worker.close(config.shutdownGraceSeconds, options);
    const runs_pending = await services.status.pendingRuns();
    left = { runs_ended: ended, runs_handed_back: handedBack, runs_pending };
  });
  // Closes before the worker, because a cron must not make a run that waits for another process.
  lifecycle.closing(services.scheduler);
  // Opens last, so that a failed start leaves no worker that takes runs.
  worker.open();
  if (config.role !== "api") services.scheduler.open();
  webhooks.dispatcher?.open();

  return {
    app,
    /** For the log; empty: the server is open. */
    get access(): readonly string[] {
      return access.ways;
    },
    hasConsole: app.hasRoute({ method: "GET", url: "/console/*" }) && isConsoleOffered(foundation),
    graphs: graphs.ids,
    /** For the log, because one of these runs may end the process; at most ten ids. */
    runsInHand: (): readonly string[] => worker.runIds.slice(0, RUNS_NAMED),
    /**
     * Resolves when a graph process has loaded the graphs, or after a time limit. `readsAhead`: reads schemas before
     * the first request.
     */
    async listen({
      readsAhead = false,
      signal,
    }: { readsAhead?: boolean; signal?: AbortSignal } = {}): Promise<{ address: string }> {
      await app.listen({ host: config.host, port: config.port, backlog: config.listenBacklog });
      const addresses = addressesOf(app.server.address() as AddressInfo);
      own.address = addresses.called;
      own.apiAddress = addresses.called + http.mountPrefix;
      if (hasApi) execution.graphProcesses.listening(own.apiAddress);
      await awaitLoaded(execution.graphProcesses, { signal, logger });
      if (phase === "starting") phase = "ready";
      if (readsAhead && isReady() && hasApi) graphs.readAhead();
      return { address: `${addresses.listening}${http.mountPrefix}` };
    },
    /** Running runs keep their code. Throws and changes nothing if the new code is invalid. */
    async renew(): Promise<void> {
      const before = [...graphs.ids];
      // The graph process loads the new code first, because a faulty graph may harm its process.
      await execution.graphProcesses.renew();
      foundation.development?.trace.forget();
      await graphs.reload();
      const project = await readGraphConfig(config.graphConfigFile, config.projectKeys);
      await services.ensureSystemAssistants(project.entries);
      // Runs of removed graphs would wait for a server that has these graphs.
      for (const id of before.filter((graphId) => !graphs.has(graphId)))
        await services.assistants.remove(THE_SERVER, systemAssistantId(id), { withThreads: false });
    },
    /**
     * Closes every part, then rejects with the collected errors. `failed`: a run may have caused the end, so unfinished
     * runs count as lost attempts.
     */
    async close(options?: { failed?: boolean }): Promise<RunsLeft> {
      phase = "closing";
      await lifecycle.close(options);
      return left;
    },
  };
};

/**
 * The composition root; several servers can live in one process. `close` and a failed start close the parts in reverse
 * order.
 */
export const createServer = async (config: Config, parts: ServerParts) => {
  const lifecycle = createLifecycle();
  try {
    return await build(config, parts, lifecycle);
  } catch (error) {
    await lifecycle
      .close()
      .catch((closeError: unknown) => parts.logger.error({ err: closeError }, "closing failed"));
    throw error;
  }
};

export type Server = Awaited<ReturnType<typeof createServer>>;

export interface RunsLeft {
  /** Own runs that ended within the grace period. */
  runs_ended?: number;
  /** Own runs that another server or the next start continues. */
  runs_handed_back?: number;
  /** All pending runs; undefined if the database did not answer. */
  runs_pending?: number | undefined;
}

/** Ten seconds by default: the removal waits for a minute anyway. */
const SWEEPS_PER_THREADLESS_SWEEP = 5;

/**
 * Every process sweeps, and skips rows that another process has locked. engine/recovery.ts handles runs of
 * dead processes.
 */
const startSweeps = (
  foundation: Foundation,
  { queue }: ServerExecution,
  { threads, onThreadsDeleted }: Services,
): void => {
  const { config, database, lifecycle, logger, store, threadExpiry, storeExpiry } = foundation;
  lifecycle.closing(startRetention({ ...foundation, onThreadsDeleted, expiry: threadExpiry }));
  lifecycle.closing(startEventRetention(createEventLog(database), config.eventRetentionSeconds, logger));
  lifecycle.closing(
    startTraceRetention(
      createTraceStorage(database),
      { traces: config.traceRetentionSeconds, usage: config.usageRetentionSeconds },
      logger,
    ),
  );
  if (database.objects !== undefined)
    lifecycle.closing(startMovingContents(database, database.objects, logger));
  lifecycle.closing(startOutboxRetention(createDeliveries(database), config.webhookRetentionSeconds, logger));
  lifecycle.closing(startItemExpiry(store, storeExpiry.sweepIntervalMinutes, logger));
  lifecycle.closing(
    startThreadlessSweep(queue, threads.upkeep, config.sweepSeconds * SWEEPS_PER_THREADLESS_SWEEP, logger),
  );
};
