import type { Server } from "../../server/app/compose.ts";
import type { Development } from "../../server/app/development.ts";
import type { Config } from "../../platform/config/config.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { GraphConfig } from "../../graphs/project/langgraph-json.ts";

/** What `threadloom dev` adds. */
export interface InDevelopment {
  /** What the environment says unless it is set, by flag or by variable. */
  readonly defaults: Readonly<Record<string, string>>;
  readonly parts: Development;
  /** Once: the server listens. */
  started(running: RunningServer): void;
  /** The server could not be started. All that was opened is closed. */
  failed(error: unknown): void;
}

export interface RunningServer {
  readonly server: Server;
  /** Where its page for people is, as somebody on this machine can call it; undefined: it has none. */
  readonly consoleAddress: string | undefined;
  readonly config: Config;
  readonly project: GraphConfig;
  readonly logger: Logger;
  /** It is being closed: nothing that is said of its graphs would be true for long. */
  isStopping(): boolean;
  /** Closes the server and exits; the embedded database goes on, for the process that is started next. */
  stopForNext(exitCode: number): void;
}
