import { pino, type DestinationStream, type Logger } from "pino";
import { errorMarkedOfGraph, fieldsWithoutContents, isCausedByProject } from "./contents.ts";
import { boundedFields, boundedText } from "./log-fields.ts";
import { openTerminal } from "./terminal.ts";

export type { Logger };

interface LoggerOptions {
  level: string;
  /** Writes error messages of the project's code, which may contain user data. Default: false. */
  contents?: boolean | undefined;
  /** Further fields of each line. */
  fields?: (() => Readonly<Record<string, string>>) | undefined;
  /** Default: standard output. `pretty-lines.ts` formats lines for a terminal. */
  destination?: DestinationStream | undefined;
}

const CAUSES_AT_MOST = 5;

/** Omits other properties: a library or a graph may attach the request with its API key. */
const fieldsOfError = (error: unknown, contents: boolean, causes = CAUSES_AT_MOST): unknown => {
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

/** `redact` keeps API keys out of the log, although no code logs request headers. */
export const createLogger = ({ level, contents = false, fields, destination }: LoggerOptions): Logger =>
  pino(
    {
      level,
      base: null,
      ...(fields === undefined ? {} : { mixin: () => ({ ...fields() }) }),
      serializers: {
        err(error: unknown) {
          const marked = errorMarkedOfGraph(error);
          if (marked === undefined) return boundedFields(fieldsOfError(error, contents));
          return boundedFields(
            contents ? fieldsOfError(marked.error, contents) : fieldsWithoutContents(marked.error),
          );
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
