import { createLogger, type Logger } from "../platform/lib/logger.ts";
import { prettyLines } from "../platform/lib/pretty-lines.ts";

/** Lines for people: a command's results are on standard output. */
export const commandLogger = (level: string, note: (text: string) => void): Logger =>
  createLogger({ level, destination: prettyLines({ write: note }) });
