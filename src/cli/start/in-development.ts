import type { Server } from "../../server/app/compose.ts";
import type { Development } from "../../server/app/development.ts";
import type { Config } from "../../platform/config/config.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { GraphConfig } from "../../graphs/project/langgraph-json.ts";

/** Additions of `threadloom dev`. */
export interface InDevelopment {
  /** Environment variables for options that neither a flag nor a variable sets. */
  readonly defaults: Readonly<Record<string, string>>;
  readonly parts: Development;
  /** Called once, when the server listens. */
  started(running: RunningServer): void;
  /** Called after a failed start, when everything is closed. */
  failed(error: unknown): void;
}

export interface RunningServer {
  readonly server: Server;
  /** The console's address, as seen from this machine; undefined without a console. */
  readonly consoleAddress: string | undefined;
  readonly config: Config;
  readonly project: GraphConfig;
  readonly logger: Logger;
  /** While the server closes, messages about its graphs would be wrong soon. */
  isStopping(): boolean;
  /** Closes the server and exits. The embedded database stays up for the next process. */
  stopForNext(exitCode: number): void;
}
