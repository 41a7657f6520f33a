import { pino, type DestinationStream, type Logger } from "pino";
import { fieldsWithoutContents, isCausedByProject, markedError } from "./contents.ts";
import { boundedFields, boundedText } from "./log-fields.ts";
import { openTerminal } from "./terminal.ts";

export type { Logger };

export interface LoggerOptions {
  level: string;
  /** Whether messages of errors of the project's code are written, which may hold what users say. */
  contents?: boolean | undefined;
  /** Where the lines go, each as JSON; standard output if it is not given. For a person at a terminal: pretty-lines.ts. */
  destination?: DestinationStream | undefined;
}

/** Causes of causes that are written; deeper ones tell nothing more. */
const CAUSES_AT_MOST = 5;

/**
 * What a log line holds of an error: what it says of itself and of its causes, and PostgreSQL's code. Nothing
 * else that hangs on it: a library or a graph may attach the request, and with it the headers with the API key.
 * `contents`: whether that includes the messages of what code of the project has thrown.
 */
export const fieldsOfError = (error: unknown, contents = true, causes = CAUSES_AT_MOST): unknown => {
  if (!(error instanceof Error)) return typeof error === "object" && error !== null ? "(an object)" : error;
  const isWithheld = !contents && isCausedByProject(error);
  const further = (one: unknown): unknown =>
    isWithheld ? fieldsWithoutContents(one, causes - 1) : fieldsOfError(one, contents, causes - 1);
  const { code, constraint } = error as { code?: unknown; constraint?: unknown };
  return {
    type: error.name,
    message: error.message,
    stack: error.stack,
    ...(typeof code === "string" ? { code } : {}),
    ...(typeof constraint === "string" ? { constraint } : {}),
    ...(error.cause !== undefined && causes > 0 ? { cause: further(error.cause) } : {}),
    ...(error instanceof AggregateError && causes > 0
      ? { errors: error.errors.slice(0, causes).map(further) }
      : {}),
  };
};

/**
 * One logger per server. Request headers are never logged, and the paths below are redacted all the same:
 * keys must not reach a log line through an object's context either.
 */
export const createLogger = ({ level, contents = false, destination }: LoggerOptions): Logger =>
  pino(
    {
      level,
      base: null,
      serializers: {
        err(error: unknown) {
          const marked = markedError(error);
          if (marked === undefined) return boundedFields(fieldsOfError(error, contents));
          return boundedFields(contents ? fieldsOfError(marked.error) : fieldsWithoutContents(marked.error));
        },
      },
      formatters: { log: boundedFields },
      hooks: {
        logMethod(values, method) {
          for (const [index, value] of values.entries()) {
            if (typeof value === "string") values[index] = boundedText(value);
          }
          method.apply(this, values);
        },
      },
      redact: { paths: ["headers", "*.headers", "apiKeys", "*.apiKeys"], censor: "[hidden]" },
    },
    destination ?? openTerminal(),
  );
