import { unusedDataWarning } from "../../platform/config/options.ts";
import type { GraphConfig } from "../../graphs/project/langgraph-json.ts";
import { bannerText, databaseName } from "../banner.ts";
import type { Server } from "../../server/app/compose.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { createServer as createSocket } from "node:net";
import type { Config } from "../../platform/config/config.ts";
import { sqlState, StartError } from "../../platform/domain/errors.ts";

export interface Listening {
  config: Config;
  address: string;
  embeddedFolder: string | undefined;
  server: Server | undefined;
  logger: Logger;
  write(text: string): void;
}

export const announce = (listening: Listening): void => {
  const { config, address, embeddedFolder, server, logger } = listening;
  const graphs = server?.graphs ?? [];
  const ways = server?.access ?? [];
  if (config.logFormat === "pretty") {
    const hasConsole = server?.hasConsole ?? false;
    listening.write(bannerText({ config, hasConsole, ways, address, embeddedFolder, graphs }));
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

export const explainListening = (error: unknown, { host, port }: Config): unknown => {
  const code = sqlState(error) ?? "";
  if (code === "EADDRINUSE") {
    return new StartError(
      `Port ${port} on ${host} is in use, perhaps by another Threadloom server. ` +
        `Choose another with --port, e.g. --port ${port + 1}.`,
    );
  }
  if (code === "EACCES") {
    return new StartError(
      `Listening on port ${port} is not permitted. Choose a port above 1023 with --port.`,
    );
  }
  if (["EADDRNOTAVAIL", "ENOTFOUND", "EAI_AGAIN"].includes(code)) {
    return new StartError(`${host} is not an address of this machine. Choose another with --host.`);
  }
  return error;
};

/** Must run first: otherwise a second server would start PostgreSQL and claim runs, only to give them back. */
export const assertPortIsFree = (config: Config): Promise<void> =>
  new Promise((free, reject) => {
    const probe = createSocket();
    probe.once("error", (error) => reject(explainListening(error, config)));
    probe.listen(config.port, config.host, () => probe.close(() => free()));
  });

const OF_HOSTED_SERVER: Readonly<Record<string, string>> = {
  REDIS_URI: "there is no Redis",
  LANGGRAPH_CLOUD_LICENSE_KEY: "there is no license",
  BG_JOB_ISOLATED_LOOPS: "graphs run in processes of their own with --workers",
  HTTP_MAX_REQUEST_BODY_BYTES: "set BODY_LIMIT_MB",
  LANGGRAPH_AES_LEGACY_KEY: "name the key in LANGGRAPH_AES_KEY, behind the new one",
};

interface Circumstances {
  project: GraphConfig;
  config: Config;
  environment: Readonly<Record<string, string | undefined>>;
  namesFolder: boolean;
  logger: Logger;
}

export const logWarnings = ({ project, config, environment, namesFolder, logger }: Circumstances): void => {
  const file = config.graphConfigFile;
  if (project.warning !== undefined) logger.warn(`${file}: ${project.warning}`);
  if (project.forImages.length > 0)
    logger.debug({ keys: project.forImages }, `${file}: keys for building an image, which a server ignores`);
  const unused = Object.entries(OF_HOSTED_SERVER)
    .filter(([name]) => (environment[name] ?? "") !== "")
    .map(([name, reason]) => `${name} (${reason})`);
  if (unused.length > 0)
    logger.warn(`variables of the hosted server that have no effect here: ${unused.join(", ")}`);
  const unusedData = unusedDataWarning(namesFolder, config.databaseUrl);
  if (unusedData !== undefined) logger.warn(unusedData);
};
