import type { RoutePlugin } from "../../http/route-plugin.ts";
import { createCancellationRoutes } from "./cancellation/routes.ts";
import { createCreationRoutes } from "./creation/routes.ts";
import { createRunAnswers } from "./joining/answers.ts";
import { createJoiningRoutes } from "./joining/routes.ts";
import { createRecordRoutes } from "./records/routes.ts";
import type { RunService } from "./service.ts";
import { createSummaryRoutes } from "./summary/routes.ts";
import { createTraceRoutes } from "./traces/routes.ts";

export const createRunRoutes =
  (service: RunService): RoutePlugin =>
  async (app) => {
    const answers = createRunAnswers(app, service);
    await app.register(createCreationRoutes(service.creation, answers));
    await app.register(createRecordRoutes(service.records));
    await app.register(createSummaryRoutes(service.summary));
    await app.register(createTraceRoutes(service.traces));
    await app.register(createJoiningRoutes(service.joining, answers));
    await app.register(createCancellationRoutes(service.cancellation));
  };
