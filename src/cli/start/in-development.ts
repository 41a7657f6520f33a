import type { Server } from "../../server/app/compose.ts";
import type { Development } from "../../server/app/foundation.ts";
import type { Config } from "../../platform/config/config.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { GraphConfig } from "../../graphs/project/langgraph-json.ts";

export interface InDevelopment {
  /** Defaults for unset variables and flags. */
  readonly defaults: Readonly<Record<string, string>>;
  readonly parts: Development;
  started(running: RunningServer): void;
  /** Called when everything is closed. */
  failed(error: unknown): void;
}

export interface RunningServer {
  readonly server: Server;
  /** As seen from this machine; undefined without a console. */
  readonly consoleAddress: string | undefined;
  readonly config: Config;
  readonly project: GraphConfig;
  readonly logger: Logger;
  /** During shutdown, messages about graphs would soon be wrong. */
  isStopping(): boolean;
  stopForNext(exitCode: number): void;
}
