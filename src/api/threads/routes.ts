import type { RoutePlugin } from "../../http/route-plugin.ts";
import { createLongAnswers } from "./long-answers.ts";
import { createRecordRoutes } from "./records/routes.ts";
import { createSearchRoutes } from "./search/routes.ts";
import type { ThreadService } from "./service.ts";
import { createStateRoutes } from "./state/routes.ts";
import { createUpkeepRoutes } from "./upkeep/routes.ts";

export const createThreadRoutes =
  (service: ThreadService): RoutePlugin =>
  async (app) => {
    const longAnswers = createLongAnswers(service.slicer);
    await app.register(createRecordRoutes(service.records));
    await app.register(createSearchRoutes(service.search, longAnswers));
    await app.register(createStateRoutes(service.states, longAnswers));
    await app.register(createUpkeepRoutes(service.upkeep));
  };
