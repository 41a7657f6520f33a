import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { createReauthorization } from "../../access/reauthorization.ts";
import { THE_SERVER } from "../../access/caller.ts";
import { createAssistantRoutes } from "../../api/assistants/routes.ts";
import { createConsoleRoutes } from "../console/routes.ts";
import { createCronRoutes } from "../../api/crons/routes.ts";
import { isLoopback, type Config } from "../../platform/config/config.ts";
import { createApp } from "../../http/app.ts";
import { originsOf } from "../../http/origins.ts";
import type { AroundApi } from "../../http/around.ts";
import type { RoutePlugin } from "../../http/route-plugin.ts";
import { signInOf } from "../../http/sign-in.ts";
import { createSiteCheck } from "../../http/sites.ts";
import { systemAssistantId } from "../../platform/domain/assistant-ids.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
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
import { openExecution } from "./execution.ts";
import { awaitLoaded } from "./graph-processes.ts";
import { openFoundation, type Foundation, type ServerParts } from "./foundation.ts";
import { connectionLimitsOf, failedLoginsOf } from "./limits.ts";
import { readGraphConfig } from "../../graphs/project/langgraph-json.ts";
import { leaveRuns, type RunsLeft } from "./leaving-runs.ts";
import { createLifecycle, type Lifecycle } from "./lifecycle.ts";
import { openCustomApp, openOwnServer, type OwnAddresses } from "./custom-app.ts";
import { createServices, type Services } from "./services.ts";
import { createWebhooks } from "./webhooks.ts";
import { startSweeps } from "./sweeps.ts";

const RUNS_NAMED = 10;

export const apiRoutes = (
  config: Pick<Config, "bodyElementsAtMost">,
  services: Services,
  disabled: ReadonlySet<ApiPart>,
): RoutePlugin[] => {
  const {
    assistants,
    threads,
    runs,
    crons,
    usage,
    streaming,
    a2a,
    agui,
    mcp,
    store,
    ui,
    deliveries,
    waiting,
  } = services;
  const has = (part: ApiPart): boolean => !disabled.has(part);
  return [
    ...(has("assistants") ? [createAssistantRoutes(assistants)] : []),
    ...(has("threads") ? [createThreadRoutes(threads), createThreadStreamRoutes(streaming.joining)] : []),
    ...(has("runs") ? [createRunRoutes(runs), createCronRoutes(crons), createUsageRoutes(usage)] : []),
    // Event streaming starts runs and reads threads.
    ...(has("threads") && has("runs") ? [createStreamingRoutes(streaming, config.bodyElementsAtMost)] : []),
    ...(has("runs") && has("meta") ? [createQueueRoutes(waiting)] : []),
    ...(has("store") ? [createStoreRoutes(store)] : []),
    ...(has("webhooks") ? [createWebhookRoutes(deliveries)] : []),
    ...(has("ui") ? [createUiRoutes(ui)] : []),
    ...(has("mcp") ? [createMcpRoutes(mcp)] : []),
    ...(has("a2a") ? [createA2aRoutes(a2a)] : []),
    ...(has("agui") ? [createAgUiRoutes(agui)] : []),
  ];
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

const consoleRoutes = (foundation: Foundation): RoutePlugin[] => {
  const { access, http } = foundation;
  if (http.disabled.has("ui")) return [];
  const isOffered = (): boolean => isConsoleOffered(foundation);
  return [createConsoleRoutes(signInOf(access.security?.securitySchemes), isOffered)];
};

/** A worker only answers health probes and executes runs. */
const createServerApp = (
  foundation: Foundation,
  services: Services,
  around: AroundApi | undefined,
): Promise<FastifyInstance> => {
  const { access, callerLimits, config, http, logger, responseBudget } = foundation;
  const hasKeys = (): boolean => access.isGuarded;
  const origins = originsOf({ named: config.corsAllowOrigins, rules: http.cors, hasKeys });
  return createApp({
    logger,
    responseBudget,
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
      ...(config.role === "worker"
        ? []
        : [...apiRoutes(config, services, http.disabled), ...consoleRoutes(foundation)]),
    ],
  });
};

const build = async (config: Config, parts: ServerParts, lifecycle: Lifecycle) => {
  let phase: "starting" | "ready" | "closing" = "starting";
  const own: OwnAddresses = {};
  const ownServer = openOwnServer(config, own, lifecycle);
  const foundation = await openFoundation(config, parts, lifecycle);
  const { access, graphs, logger } = foundation;
  const webhooks = createWebhooks(foundation, {
    ownAddress: () => own.address,
    sendPush: (push, signal) => services.a2a.sendPush(push, signal),
  });
  const execution = await openExecution(foundation, webhooks);
  own.executes = (runId) => execution.worker.runIds.includes(runId);
  const isReady = (): boolean => phase === "ready";
  const services = await createServices(foundation, execution, webhooks, isReady);
  startSweeps(foundation, execution, services);
  if (config.role !== "worker") services.ui.prepare();
  const around = await openCustomApp(foundation, ownServer);
  const app = lifecycle.closing(await createServerApp(foundation, services, around));
  // The dispatcher closes after the runs, because it receives their ends, and before the routes, because some receive
  // webhooks.
  if (webhooks.dispatcher !== undefined) lifecycle.closing(webhooks.dispatcher);
  const { worker } = execution;
  // Closes before the routes, so that runs end or are handed back while their readers are connected.
  let left: RunsLeft = {};
  lifecycle.onClose(async (options) => {
    left = await leaveRuns(worker, services.status, config.shutdownGraceSeconds, options);
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
    /** Undefined for a factory, because only building the graph would show its schema. */
    async inputSchemaOf(graphId: string): Promise<JsonObject | undefined> {
      return graphs.isFactory(graphId) ? undefined : await graphs.declaredInput(graphId);
    },
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
      own.apiAddress = addresses.called + foundation.http.mountPrefix;
      if (ownServer !== undefined) execution.graphProcesses.listening(own.apiAddress);
      await awaitLoaded(execution.graphProcesses, { signal, logger });
      if (phase === "starting") phase = "ready";
      if (readsAhead && isReady() && config.role !== "worker") graphs.readAhead();
      return { address: `${addresses.listening}${foundation.http.mountPrefix}` };
    },
    /**
     * Running runs keep their code. Throws and changes nothing if the new code is invalid.
     * @param how `isWhole`: the environment or the loader's settings have changed
     */
    async renew(how: { isWhole: boolean }): Promise<void> {
      const before = [...graphs.ids];
      // The graph process loads the new code first, because a faulty graph may harm its process.
      await execution.graphProcesses.renew(how);
      await foundation.reloading?.reload();
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
