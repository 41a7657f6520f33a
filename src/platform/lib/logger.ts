import { pino, type DestinationStream, type Logger } from "pino";
import { errorFields, GraphError } from "./contents.ts";
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

/** `redact` keeps API keys out of the log, although no code logs request headers. */
export const createLogger = ({ level, contents = false, fields, destination }: LoggerOptions): Logger =>
  pino(
    {
      level,
      base: null,
      ...(fields === undefined ? {} : { mixin: () => ({ ...fields() }) }),
      serializers: {
        err(error: unknown) {
          const isOfGraph = error instanceof GraphError;
          const shows = { contents: contents || !isOfGraph, ofProject: contents };
          return boundedFields(errorFields(isOfGraph ? error.error : error, shows));
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
