import type { RoutePlugin } from "../../http/route-plugin.ts";
import type { CallService } from "../calls/service.ts";

export const createMcpRoutes =
  (_calls: CallService): RoutePlugin =>
  async () =>
    undefined;
