import { pino, type Logger } from "pino";

export type { Logger };

export interface LoggerOptions {
  level: string;
  /** Readable lines for a person at a terminal instead of JSON for a collector. */
  pretty: boolean;
}

/**
 * One logger per server. Request headers are never logged, and the paths below are redacted all the same:
 * keys must not reach a log line through an error's context either.
 */
export const createLogger = ({ level, pretty }: LoggerOptions): Logger =>
  pino({
    level,
    base: null,
    redact: { paths: ["headers", "*.headers", "apiKeys", "*.apiKeys"], censor: "[hidden]" },
    ...(pretty
      ? {
          transport: {
            target: "pino-pretty",
            options: { ignore: "pid,hostname", translateTime: "HH:MM:ss" },
          },
        }
      : {}),
  });
