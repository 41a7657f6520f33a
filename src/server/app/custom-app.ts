import type { Config } from "../../platform/config/config.ts";
import { putAroundApi } from "../custom-app/around-api.ts";
import { loadCustomApp } from "../custom-app/loading.ts";
import { registerOwnServer, type OwnServerRegistration } from "../../graphs/own-server.ts";
import type { AroundApi } from "../../http/around.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { Foundation } from "./foundation.ts";
import type { Lifecycle } from "./lifecycle.ts";

/** Set late: when the server is built and when it listens. */
export interface OwnAddresses {
  address?: string;
  apiAddress?: string;
  executes?: (runId: string) => boolean;
}

/** Before graphs are loaded, because they may create a client. */
export const openOwnServer = (
  { role }: Config,
  own: OwnAddresses,
  lifecycle: Lifecycle,
): OwnServerRegistration | undefined => {
  if (role === "worker") return undefined;
  const executes = (runId: string): boolean => own.executes?.(runId) ?? false;
  return lifecycle.closing(registerOwnServer({ address: () => own.apiAddress, executes }));
};

/** Undefined on a worker. */
export const openCustomApp = async (
  { bodyLimitBytes }: Config,
  { app, authFirst, customRouteAuth }: Foundation["http"],
  ownServer: OwnServerRegistration | undefined,
  logger: Logger,
): Promise<AroundApi | undefined> => {
  if (app === undefined || ownServer === undefined) return undefined;
  const loaded = await ownServer.run(() => loadCustomApp(app, logger));
  const customApp: typeof loaded = {
    ...loaded,
    fetch: (request, environment) => ownServer.run(() => loaded.fetch(request, environment)),
  };
  return putAroundApi(customApp, { bytesAtMost: bodyLimitBytes, authFirst, customRouteAuth });
};
