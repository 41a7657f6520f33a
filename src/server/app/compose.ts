import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { createReauthorization } from "../../access/reauthorization.ts";
import type { Authorize } from "../../access/authorize.ts";
import { THE_SERVER } from "../../access/caller.ts";
import { createAssistantRoutes } from "../../api/assistants/routes.ts";
import { createConsoleRoutes } from "../console/routes.ts";
import { createCronRoutes } from "../../api/crons/routes.ts";
import { isLoopback, type Config } from "../../platform/config/config.ts";
import { createResponseBudget, type ResponseBudget } from "../../http/response-budget.ts";
import { createApp } from "../../http/app.ts";
import type { CallerLimits } from "../../http/limits/caller-limits.ts";
import { originsOf } from "../../http/origins.ts";
import type { AroundApi } from "../../http/around.ts";
import type { RoutePlugin } from "../../http/route-plugin.ts";
import { signInOf } from "../../http/sign-in.ts";
import { createSiteCheck } from "../../http/sites.ts";
import { systemAssistantId } from "../../platform/domain/assistant-ids.ts";
import { NO_FAULTS, type Faults } from "../../platform/domain/faults.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { ApiPart } from "../../graphs/project/http.ts";
import { createRunRoutes } from "../../api/runs/routes.ts";
import { createQueueRoutes } from "../../api/status/queue/routes.ts";
import { createStatusRoutes } from "../../api/status/routes.ts";
import { createStoreRoutes } from "../../api/store/routes.ts";
import { createThreadStreamRoutes } from "../../protocols/streaming/joining/routes.ts";
import { createStreamingRoutes } from "../../protocols/streaming/routes.ts";
import { createThreadRoutes } from "../../api/threads/routes.ts";
import { createUiRoutes } from "../../protocols/ui/routes.ts";
import { createWebhookRoutes } from "../../protocols/webhooks/routes.ts";
import { addressesOf } from "./addresses.ts";
import { openExecution } from "./execution.ts";
import { awaitLoaded } from "./graph-processes.ts";
import { openFoundation, type Foundation } from "./foundation.ts";
import { callerLimitsOf, connectionLimitsOf, failedLoginsOf } from "./limits.ts";
import type { Development } from "./development.ts";
import { readGraphConfig } from "../../graphs/project/langgraph-json.ts";
import { leaveRuns, type RunsLeft } from "./leaving-runs.ts";
import { createLifecycle, type Lifecycle } from "./lifecycle.ts";
import { openCustomApp, openOwnServer, type OwnAddresses } from "./custom-app.ts";
import { createServices, type Services } from "./services.ts";
import { createWebhooks } from "./webhooks.ts";
import { startSweeps } from "./sweeps.ts";

export interface ServerParts {
  connectionString: string;
  logger: Logger;
  /** Ends the process if its loop is blocked for longer than BLOCKED_LOOP_SECONDS. */
  endsBlockedProcess?: boolean;
  /** For fault tests. */
  faults?: Faults;
  environment?: Readonly<Record<string, string | undefined>>;
  /** For tests with shorter waits. */
  responseBudget?: ResponseBudget | undefined;
  development?: Development | undefined;
  signal?: AbortSignal | undefined;
  /** Default: API keys and the project's handlers. */
  authorize?: Authorize | undefined;
}

const RUNS_NAMED = 10;

/** Several servers can live in one process. */
export interface Server {
  readonly app: FastifyInstance;
  /** For the log; empty: the server is open. */
  readonly access: readonly string[];
  readonly hasConsole: boolean;
  readonly graphs: readonly string[];
  /** Undefined for a factory, which would have to build the graph. */
  inputSchemaOf(graphId: string): Promise<JsonObject | undefined>;
  /** At most ten ids, for the log: one of these runs may end the process. */
  runsInHand(): readonly string[];
  /**
   * Answers requests at once. Resolves when a graph process has loaded the graphs, or after a time limit. `readsAhead`:
   * reads schemas before the first request.
   */
  listen(options?: { readsAhead?: boolean; signal?: AbortSignal }): Promise<{ address: string }>;
  /**
   * Running runs keep their code. If the new code is invalid, throws and changes nothing.
   * @param isWhole the environment or the loader's settings have changed
   */
  renew(options: { isWhole: boolean }): Promise<void>;
  /**
   * Closes every part, then rejects with the collected errors. `failed`: a run may have caused the end, so unfinished
   * runs count as lost attempts.
   */
  close(options?: { failed?: boolean }): Promise<RunsLeft>;
}

export const apiRoutes = (
  config: Pick<Config, "bodyElementsAtMost">,
  services: Services,
  disabled: ReadonlySet<ApiPart>,
): RoutePlugin[] => {
  const { assistants, threads, runs, crons, streaming, store, ui, deliveries, waiting } = services;
  const has = (part: ApiPart): boolean => !disabled.has(part);
  return [
    ...(has("assistants") ? [createAssistantRoutes(assistants)] : []),
    ...(has("threads") ? [createThreadRoutes(threads), createThreadStreamRoutes(streaming.joining)] : []),
    ...(has("runs") ? [createRunRoutes(runs), createCronRoutes(crons)] : []),
    // Event streaming starts runs and reads threads.
    ...(has("threads") && has("runs") ? [createStreamingRoutes(streaming, config.bodyElementsAtMost)] : []),
    ...(has("runs") && has("meta") ? [createQueueRoutes(waiting)] : []),
    ...(has("store") ? [createStoreRoutes(store)] : []),
    ...(has("webhooks") ? [createWebhookRoutes(deliveries)] : []),
    ...(has("ui") ? [createUiRoutes(ui)] : []),
  ];
};

interface HttpParts {
  responseBudget: ResponseBudget;
  callerLimits: CallerLimits;
  foundation: Foundation;
  around: AroundApi | undefined;
  lifecycle: Lifecycle;
  logger: Logger;
}

/** An open server shows the console only to its own machine. */
const isConsoleOffered = (config: Config, { access }: Foundation): boolean =>
  access.isGuarded || isLoopback(config.host);

const consoleRoutes = (config: Config, foundation: Foundation): RoutePlugin[] => {
  const { access, http } = foundation;
  if (config.noConsole || http.disabled.has("ui")) return [];
  const isOffered = (): boolean => isConsoleOffered(config, foundation);
  return [createConsoleRoutes({ signIn: signInOf(access.security?.securitySchemes), isOffered })];
};

/** A worker only answers health probes and executes runs. */
const createServerApp = (config: Config, services: Services, parts: HttpParts): Promise<FastifyInstance> => {
  const { responseBudget, callerLimits, foundation, logger } = parts;
  const { access, http } = foundation;
  const hasKeys = (): boolean => access.isGuarded;
  const reauthorization = parts.lifecycle.closing(
    createReauthorization({ ...access, everyMs: config.accessCheckSeconds * 1_000, logger }),
  );
  const origins = originsOf({ named: config.corsAllowOrigins, rules: http.cors, hasKeys });
  return createApp({
    logger,
    responseBudget,
    authenticate: access.authenticate,
    security: access.security,
    bodyLimits: { bytes: config.bodyLimitBytes, elements: config.bodyElementsAtMost },
    connectionLimits: connectionLimitsOf(config),
    callerLimits,
    reauthorization,
    failedLogins: failedLoginsOf(config, callerLimits.refusals),
    trustedProxies: config.trustedProxies,
    cors: { origins, rules: http.cors },
    rules: http,
    refusesOwnWebhooks: foundation.webhooks.refusesApi,
    around: parts.around,
    socketsSettled: () => services.streaming.settled(),
    siteCheck: createSiteCheck({ ...config, origins, hasKeys, logger }),
    routes: [
      createStatusRoutes(services.status, { meta: !http.disabled.has("meta") }),
      ...(config.role === "worker"
        ? []
        : [...apiRoutes(config, services, http.disabled), ...consoleRoutes(config, foundation)]),
    ],
  });
};

const build = async (config: Config, parts: ServerParts, lifecycle: Lifecycle): Promise<Server> => {
  const { connectionString, logger, faults = NO_FAULTS, environment = {} } = parts;
  const { responseBudget = createResponseBudget() } = parts;
  let phase: "starting" | "ready" | "closing" = "starting";
  const own: OwnAddresses = {};
  const ownServer = openOwnServer(config, own, lifecycle);
  const foundation = await openFoundation({
    config,
    connectionString,
    processId: newId(),
    authorize: parts.authorize,
    development: parts.development,
    signal: parts.signal,
    lifecycle,
    logger,
  });
  const ownAddress = (): string | undefined => own.address;
  const webhooks = createWebhooks({ foundation, environment, ownAddress, faults, logger });
  const execution = await openExecution({
    foundation,
    webhooks,
    endsBlockedProcess: parts.endsBlockedProcess,
    development: parts.development,
    faults,
    lifecycle,
    logger,
  });
  own.executes = (runId) => execution.worker.runIds.includes(runId);
  const isReady = (): boolean => phase === "ready";
  const callerLimits = callerLimitsOf(config, foundation.database.encryption, logger);
  const services = await createServices({
    foundation,
    execution,
    webhooks,
    callerLimits,
    isReady,
    faults,
    lifecycle,
    logger,
  });
  startSweeps({ foundation, execution, services, deliveries: webhooks.deliveries, lifecycle, logger });
  if (config.role !== "worker") services.ui.prepare();
  const around = await openCustomApp(config, foundation.http, ownServer, logger);
  const httpParts = { responseBudget, callerLimits, foundation, around, lifecycle, logger };
  const app = lifecycle.closing(await createServerApp(config, services, httpParts));
  // After the runs, whose ends it receives; before the routes, some of which receive webhooks.
  if (webhooks.dispatcher !== undefined) lifecycle.closing(webhooks.dispatcher);
  const { worker } = execution;
  // First: runs end or are handed back while their readers are connected.
  let left: RunsLeft = {};
  lifecycle.onClose(async (options) => {
    left = await leaveRuns(worker, services.status, config.shutdownGraceSeconds, options);
  });
  // Before the worker closes: a cron must not make a run that waits for another process.
  lifecycle.closing(services.scheduler);
  // Last: a failure before this leaves no worker that takes runs.
  worker.open();
  if (config.role !== "api") services.scheduler.open();
  webhooks.dispatcher?.open();

  const { graphs, access } = foundation;
  return {
    app,
    get access() {
      return access.ways;
    },
    hasConsole: app.hasRoute({ method: "GET", url: "/console/*" }) && isConsoleOffered(config, foundation),
    graphs: graphs.ids,
    async inputSchemaOf(graphId) {
      return graphs.isFactory(graphId) ? undefined : await graphs.declaredInput(graphId);
    },
    runsInHand: () => worker.runIds.slice(0, RUNS_NAMED),
    async listen({ readsAhead = false, signal } = {}) {
      await app.listen({ host: config.host, port: config.port, backlog: config.listenBacklog });
      const addresses = addressesOf(app.server.address() as AddressInfo);
      own.address = addresses.called;
      own.apiAddress = addresses.called + foundation.http.mountPrefix;
      if (ownServer !== undefined) execution.graphProcesses?.listening(own.apiAddress);
      await awaitLoaded(execution.graphProcesses, { signal, logger });
      if (phase === "starting") phase = "ready";
      if (readsAhead && isReady() && config.role !== "worker") graphs.readAhead();
      return { address: `${addresses.listening}${foundation.http.mountPrefix}` };
    },
    async renew(how) {
      const before = [...graphs.ids];
      // The graph process loads the new code first, because a faulty graph may harm its process.
      await execution.graphProcesses?.renew(how);
      await foundation.reloading?.reload();
      const project = await readGraphConfig(config.graphConfigFile, config.projectKeys);
      await services.ensureSystemAssistants(project.entries);
      // Otherwise runs of removed graphs would wait for a server that has them.
      for (const id of before.filter((graphId) => !graphs.has(graphId)))
        await services.assistants.records.remove(THE_SERVER, systemAssistantId(id), { withThreads: false });
    },
    async close(options) {
      phase = "closing";
      await lifecycle.close(options);
      return left;
    },
  };
};

/** The composition root. `close` takes the parts down in reverse order, and so does a failed start. */
export const createServer = async (config: Config, parts: ServerParts): Promise<Server> => {
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
