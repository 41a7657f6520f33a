import type { RoutePlugin } from "../../http/route-plugin.ts";
import { createRecordRoutes } from "./records/routes.ts";
import { createSearchRoutes } from "./search/routes.ts";
import type { ThreadService } from "./service.ts";
import { createStateRoutes } from "./state/routes.ts";
import { createUpkeepRoutes } from "./upkeep/routes.ts";

export const createThreadRoutes =
  (service: ThreadService): RoutePlugin =>
  async (app) => {
    await app.register(createRecordRoutes(service.records));
    await app.register(createSearchRoutes(service.search));
    await app.register(createStateRoutes(service.states));
    await app.register(createUpkeepRoutes(service.upkeep));
  };
