import { corsRulesOf, corsSchema } from "../../src/graphs/project/http.ts";
import { createReadRoom } from "../../src/http/large-answers.ts";
import { fileURLToPath } from "node:url";
import { Writable } from "node:stream";
import supertest from "supertest";
import { createAssistantRoutes } from "../../src/api/assistants/routes.ts";
import { createAssistantService } from "../../src/api/assistants/service.ts";
import { createAuthorize } from "../../src/access/authorize.ts";
import { THE_SERVER } from "../../src/access/caller.ts";
import { openDatabase } from "../../src/platform/database/database.ts";
import { loadGraphs } from "../../src/graphs/graphs.ts";
import { createApp } from "../../src/http/app.ts";
import { allowedOrigins, originsOf } from "../../src/http/sites.ts";
import { createLogger } from "../../src/platform/lib/logger.ts";
import type { CallerLimits } from "../../src/http/limits/caller-limits.ts";
import type { ConnectionLimits } from "../../src/http/open-answers.ts";
import type { RoutePlugin } from "../../src/http/route-plugin.ts";
import { createStatusRepository } from "../../src/api/status/repository.ts";
import { createStatusRoutes } from "../../src/api/status/routes.ts";
import { createStatusService } from "../../src/api/status/service.ts";
import { freshDatabase } from "./database.ts";
import { createAuthenticate } from "./access.ts";

export const FIXTURE_GRAPHS = fileURLToPath(new URL("../fixtures/langgraph.json", import.meta.url));

/** A logger whose lines can be searched afterwards. */
export const listeningLogger = () => {
  const lines: string[] = [];
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(chunk.toString());
      done();
    },
  });
  return { logger: createLogger({ level: "trace", destination }), lines };
};

export interface TestAppOptions {
  apiKeys?: string[];
  corsAllowOrigins?: string[];
  /** `http.cors` of a langgraph.json. */
  cors?: object;
  bodyLimit?: number;
  bodyElements?: number;
  connectionLimits?: Partial<ConnectionLimits>;
  callerLimits?: CallerLimits;
  routes?: RoutePlugin[];
}

export const CONNECTION_LIMITS = { atMost: 1_000, headersMs: 20_000, requestMs: 60_000, keepAliveMs: 72_000 };
const BODY_LIMIT = 4 * 1024 * 1024;
const BODY_ELEMENTS = 250_000;

/** The HTTP application without a database, for tests that need no room. */
export const aBareApp = async (options: TestAppOptions = {}) => {
  const { logger, lines } = listeningLogger();
  const cors = corsSchema.parse(options.cors);
  const rules = cors == null ? undefined : corsRulesOf(cors);
  const named = options.corsAllowOrigins ?? [];
  const app = await createApp({
    readRoom: createReadRoom(),
    logger,
    authenticate: createAuthenticate(options.apiKeys ?? []),
    bodyLimits: { bytes: options.bodyLimit ?? BODY_LIMIT, elements: options.bodyElements ?? BODY_ELEMENTS },
    connectionLimits: { ...CONNECTION_LIMITS, ...options.connectionLimits },
    callerLimits: options.callerLimits,
    cors: { origins: originsOf({ named, rules, hasKeys: () => true }), rules },
    routes: options.routes ?? [],
  });
  await app.ready();
  return { app, lines, client: supertest(app.server) };
};

/** Assistants and status over HTTP, on a database of their own, with the fixture graphs. */
export const startAssistants = async (options: TestAppOptions = {}) => {
  const fresh = await freshDatabase();
  const { logger, lines } = listeningLogger();
  const database = openDatabase({
    connectionString: fresh.connectionString,
    poolSize: 10,
    applicationName: "threadloom test",
    preparedStatements: true,
    logger,
  });
  const graphs = await loadGraphs({ configPath: FIXTURE_GRAPHS, logger });
  const assistants = createAssistantService({
    database,
    authorize: createAuthorize(),
    graphs,
    deleteThreads: (_caller, threadIds) =>
      database.query("delete from threadloom.threads where thread_id = any($1::uuid[])", [threadIds]),
  });
  await assistants.ensureOfGraphs(THE_SERVER, graphs.ids);
  const status = createStatusService({ database, repository: createStatusRepository(database) });
  const app = await createApp({
    readRoom: createReadRoom(),
    logger,
    authenticate: createAuthenticate(options.apiKeys ?? []),
    bodyLimits: { bytes: options.bodyLimit ?? BODY_LIMIT, elements: options.bodyElements ?? BODY_ELEMENTS },
    connectionLimits: CONNECTION_LIMITS,
    cors: { origins: allowedOrigins(options.corsAllowOrigins ?? ["*"]) },
    routes: [createAssistantRoutes(assistants), createStatusRoutes(status), ...(options.routes ?? [])],
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  return {
    app,
    url,
    lines,
    database,
    graphs,
    assistants,
    client: supertest(url),
    async close(): Promise<void> {
      await app.close();
      status.close();
      await graphs.close();
      await database.close();
      await fresh.drop();
    },
  };
};
