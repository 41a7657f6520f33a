/** The package's export, described in docs/embedding.md. */
import { dirname, resolve } from "node:path";
import type { FastifyInstance } from "fastify";
import { ownEncryption, parseConfig } from "../../platform/config/config.ts";
import { projectKeysIn } from "../../platform/config/project-keys.ts";
import { graphConfigFileOf, mergeEnvironments, type FlagNames } from "../../platform/config/resolve.ts";
import type { EmbeddedPostgres } from "../../platform/database/embedded/embedded.ts";
import { createLogger } from "../../platform/lib/logger.ts";
import { tsconfigOf } from "../../graphs/modules.ts";
import { readGraphConfig } from "../../graphs/project/langgraph-json.ts";

export type { AppAuth, AppEnvironment } from "../custom-app/environment.ts";

export interface ServerOptions {
  /** Default: `langgraph.json` in the working directory. */
  config?: string;
  /** Default: an embedded PostgreSQL in `dataFolder`. */
  databaseUrl?: string;
  /** Default: `.threadloom` in the working directory. */
  dataFolder?: string;
  /** Settings of the embedded PostgreSQL, e.g. `{ fsync: "off" }` in tests. */
  postgresSettings?: Readonly<Record<string, string>>;
  /** Default: 127.0.0.1. */
  host?: string;
  /** 0 chooses a free port. Default: 8123. */
  port?: number;
  /** Graph processes; 0 executes graphs in this process. Default: 0. */
  workers?: number | "auto";
  /** Default: info. */
  logLevel?: "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";
  /**
   * All other options, by variable name: `{ API_KEYS: "…" }`. The process's variables are not used unless passed:
   * `environment: process.env`.
   */
  environment?: Readonly<Record<string, string | undefined>>;
}

export interface EmbeddedServer {
  /** Add your routes before `listen`. */
  readonly app: FastifyInstance;
  readonly inject: FastifyInstance["inject"];
  readonly graphs: readonly string[];
  /** Contains a password. */
  readonly databaseUrl: string;
  /** Returns the address, e.g. `http://127.0.0.1:8123`. */
  listen(): Promise<string>;
  /** Ends or hands back its runs. Stops the embedded PostgreSQL unless another process uses it. */
  close(): Promise<void>;
}

/** As in serve.ts. */
const CALLBACKS = { LANGCHAIN_CALLBACKS_BACKGROUND: "false" };

/** Variables that are set win. */
const completeProcess = (configFile: string, environment: Readonly<Record<string, string>>): void => {
  const usual = { ...CALLBACKS, TSX_TSCONFIG_PATH: tsconfigOf(dirname(resolve(configFile))) };
  Object.assign(process.env, mergeEnvironments(usual, environment, process.env));
};

/** The names of ServerOptions. */
const FLAG_NAMES = {
  graphConfigFile: "config",
  host: "host",
  port: "port",
  graphProcesses: "workers",
  dataFolder: "dataFolder",
} satisfies FlagNames;

/**
 * Takes requests after `listen`; handles no signals, so call `close` before the process ends. Rejects with one sentence
 * and leaves nothing open if options, langgraph.json, a graph or the database are invalid.
 */
export const createServer = async (options: ServerOptions = {}): Promise<EmbeddedServer> => {
  const given = options.environment ?? {};
  const configFile = graphConfigFileOf(given, options.config);
  const project = await readGraphConfig(configFile, projectKeysIn(given));
  if (project.namesEncryption) throw ownEncryption(`encryption of ${project.path}`);
  completeProcess(configFile, project.environment);
  const flags = {
    graphConfigFile: configFile,
    host: options.host,
    port: options.port?.toString(),
    graphProcesses: options.workers?.toString(),
    dataFolder: options.dataFolder,
  };
  const { databaseUrl: address } = options;
  const named = { DATABASE_URL: address, LOG_LEVEL: options.logLevel };
  const environment = mergeEnvironments(project.environment, given, named);
  const config = parseConfig(flags, environment, { flagNames: FLAG_NAMES });
  const logger = createLogger({ level: config.logLevel, contents: config.logContents });
  const { createServer: compose } = await import("../app/compose.ts");
  let postgres: EmbeddedPostgres | undefined;
  if (config.databaseUrl === undefined) {
    const { startEmbeddedPostgres } = await import("../../platform/database/embedded/embedded.ts");
    const settings = options.postgresSettings ?? {};
    postgres = await startEmbeddedPostgres({ dataFolder: resolve(config.dataFolder), settings, logger });
  }
  const databaseUrl = config.databaseUrl ?? postgres?.connectionString ?? "";
  try {
    const server = await compose(config, { connectionString: databaseUrl, logger, environment });
    let closing: Promise<void> | undefined;
    return {
      app: server.app,
      inject: server.app.inject.bind(server.app) as FastifyInstance["inject"],
      graphs: server.graphs,
      databaseUrl,
      listen: async () => (await server.listen()).address,
      close: () =>
        (closing ??= server
          .close()
          .then(() => undefined)
          .finally(() => postgres?.close())),
    };
  } catch (error) {
    await postgres?.close();
    throw error;
  }
};
