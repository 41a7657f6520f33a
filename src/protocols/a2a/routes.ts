import type { RoutePlugin } from "../../http/route-plugin.ts";
import type { CallService } from "../calls/service.ts";

export const createA2aRoutes =
  (_calls: CallService): RoutePlugin =>
  async () =>
    undefined;
