import { createReadRoom } from "../../http/large-answers.ts";
import { createApp } from "../../http/app.ts";
import { originsOf } from "../../http/sites.ts";
import type { Config } from "../../platform/config/config.ts";
import { ANONYMOUS } from "../../access/caller.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { GraphConfig } from "../../graphs/project/langgraph-json.ts";
import { createStatusRoutes } from "../../api/status/routes.ts";
import { securityOf } from "./auth.ts";
import { apiRoutes } from "./compose.ts";
import { connectionLimitsOf } from "./limits.ts";
import type { Services } from "./services.ts";

/** A service for routes that are only registered. */
const anonymous: unknown = new Proxy(() => undefined, { get: () => anonymous });

/** Opens no database and loads no graph. */
export const apiDocument = async (
  config: Config,
  project: Pick<GraphConfig, "http" | "auth">,
  logger: Logger,
): Promise<JsonObject> => {
  const { http } = project;
  const services = anonymous as Services;
  const app = await createApp({
    logger,
    readRoom: createReadRoom(),
    authenticate: () => ANONYMOUS,
    security: securityOf(project.auth),
    bodyLimits: { bytes: config.bodyLimitBytes, elements: config.bodyElementsAtMost },
    connectionLimits: connectionLimitsOf(config),
    cors: { origins: originsOf({ named: [], rules: http.cors, hasKeys: () => false }), rules: http.cors },
    rules: http,
    routes: [
      createStatusRoutes(services.status, { meta: !http.disabled.has("meta") }),
      ...apiRoutes(config, services, http.disabled),
    ],
  });
  try {
    await app.ready();
    return app.swagger() as unknown as JsonObject;
  } finally {
    await app.close();
  }
};
