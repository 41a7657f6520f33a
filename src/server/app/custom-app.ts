import type { Config } from "../../platform/config/config.ts";
import { putAroundApi } from "../custom-app/around-api.ts";
import { loadCustomApp } from "../custom-app/loading.ts";
import { registerOwnServer, type OwnServerRegistration } from "../../graphs/own-server.ts";
import type { AroundApi } from "../../http/around.ts";
import type { Foundation } from "./foundation.ts";
import type { Lifecycle } from "./lifecycle.ts";

/** Set when the server is built, and again when it listens. */
export interface OwnAddresses {
  address?: string;
  apiAddress?: string;
  executes?: (runId: string) => boolean;
}

/** Must run before graphs are loaded, because they may create a client. */
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
  { config, http, logger }: Foundation,
  ownServer: OwnServerRegistration | undefined,
): Promise<AroundApi | undefined> => {
  const { app } = http;
  if (app === undefined || ownServer === undefined) return undefined;
  const loaded = await ownServer.run(() => loadCustomApp(app, logger));
  const customApp: typeof loaded = {
    ...loaded,
    fetch: (request, environment) => ownServer.run(() => loaded.fetch(request, environment)),
  };
  return putAroundApi(customApp, http, config.bodyLimitBytes);
};
