import type { RoutePlugin } from "../../http/route-plugin.ts";
import { createGraphRoutes } from "./graph/routes.ts";
import { createRecordRoutes } from "./records/routes.ts";
import { createSearchRoutes } from "./search/routes.ts";
import type { AssistantService } from "./service.ts";
import { createVersionRoutes } from "./versions/routes.ts";

export const createAssistantRoutes =
  (service: AssistantService): RoutePlugin =>
  async (app) => {
    await app.register(createRecordRoutes(service.records));
    await app.register(createSearchRoutes(service.search));
    await app.register(createVersionRoutes(service.versions));
    await app.register(createGraphRoutes(service.graph));
  };
