import type { RoutePlugin } from "../../http/route-plugin.ts";
import type { CallService } from "../calls/service.ts";

export const createAgUiRoutes =
  (_calls: CallService): RoutePlugin =>
  async () =>
    undefined;
