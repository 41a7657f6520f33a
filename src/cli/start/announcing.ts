import type { Server } from "../../server/app/compose.ts";
import type { Config } from "../../platform/config/config.ts";
import { signInOf } from "../../http/sign-in.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { GraphConfig } from "../../graphs/project/langgraph-json.ts";
import { bannerText, databaseName } from "../banner.ts";

export interface Listening {
  config: Config;
  project: GraphConfig;
  address: string;
  embeddedFolder: string | undefined;
  server: Server | undefined;
  logger: Logger;
  write(text: string): void;
}

export const announce = async (listening: Listening): Promise<void> => {
  const { config, project, address, embeddedFolder, server, logger } = listening;
  const graphs = server?.graphs ?? [];
  const ways = server?.access ?? [];
  if (config.logFormat === "pretty") {
    const inputSchema =
      graphs[0] === undefined ? undefined : await server?.inputSchemaOf(graphs[0]).catch(() => undefined);
    const hasConsole = server?.hasConsole ?? false;
    const signIn =
      project.auth === undefined ? undefined : signInOf(project.auth.openapi?.securitySchemes ?? {});
    listening.write(
      bannerText({ config, hasConsole, ways, signIn, address, embeddedFolder, graphs, inputSchema }),
    );
    return;
  }
  const database = embeddedFolder ?? databaseName(config.databaseUrl ?? "");
  const access = ways.length === 0 ? "open" : ways.join(" and ");
  if (access === "open")
    logger.warn("there are no API keys: every client that can connect may read, run and delete everything");
  logger.info(
    { address, docs: `${address}/docs`, graphs, database, role: config.role, access },
    `listening on ${address}`,
  );
};
