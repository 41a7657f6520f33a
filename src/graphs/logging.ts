import { Console } from "node:console";
import { Writable } from "node:stream";
import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";
import type { Logger } from "../platform/lib/logger.ts";
import { boundedFields, boundedText } from "../platform/lib/log-fields.ts";

const CONSOLE_SEVERITIES = {
  debug: "debug",
  trace: "debug",
  warn: "warn",
  error: "error",
  assert: "error",
} as const;

/** Node prints warnings (e.g. deprecations) with `console.error`. */
const WARNING_OF_NODE = /^\(node:\d+\) /;

type Severity = "info" | (typeof CONSOLE_SEVERITIES)[keyof typeof CONSOLE_SEVERITIES];

/** Writes one log line per call, because text of a caller could otherwise forge log lines. */
export const createLogConsole = (logger: Logger): Console => {
  const consoleOf = (severity: Severity): Console => {
    const stream = new Writable({
      decodeStrings: false,
      write(text: string, _encoding, done) {
        const level = severity === "error" && WARNING_OF_NODE.test(text) ? "warn" : severity;
        if (logger.isLevelEnabled(level)) {
          logger[level]({ ...logOrigin(), text: text.replace(/\n$/, "") }, "printed");
        }
        done();
      },
    });
    return new Console({ stdout: stream, stderr: stream });
  };
  const logConsole = consoleOf("info");
  for (const severity of new Set(Object.values(CONSOLE_SEVERITIES))) {
    const other = consoleOf(severity);
    for (const [method, its] of Object.entries(CONSOLE_SEVERITIES)) {
      if (its === severity) Reflect.set(logConsole, method, Reflect.get(other, method));
    }
  }
  return logConsole;
};

interface LogOrigin {
  run_id?: string;
  thread_id?: string;
  graph_id?: string;
  node?: string;
}

export const logOrigin = (): LogOrigin => {
  const { metadata = {}, configurable = {} } =
    (AsyncLocalStorageProviderSingleton.getRunnableConfig() as
      { metadata?: Record<string, unknown>; configurable?: Record<string, unknown> } | undefined) ?? {};
  const named = {
    run_id: metadata.run_id ?? configurable.run_id,
    thread_id: metadata.thread_id ?? configurable.thread_id,
    graph_id: metadata.graph_id ?? configurable.graph_id,
    node: metadata.langgraph_node,
  };
  return Object.fromEntries(Object.entries(named).filter(([, value]) => typeof value === "string"));
};

/** Every copy of `@langchain/langgraph-sdk/logging` reads this key of `globalThis`. */
export const SDK_LOGGER = Symbol.for("langgraph.api.sdk-logger");

const SDK_SEVERITIES = {
  error: "error",
  warn: "warn",
  help: "info",
  data: "info",
  info: "info",
  prompt: "info",
  http: "debug",
  verbose: "debug",
  debug: "debug",
  input: "debug",
  silly: "trace",
} as const;

/** Winston's arguments. */
type Log = (message: unknown, ...more: unknown[]) => SdkLogger;
export type SdkLogger = { readonly [Method in keyof typeof SDK_SEVERITIES]: Log };

/** Longer fields are cut. */
const CHARACTERS_AT_MOST = 8_000;

/** Only for small values: a buffer of some megabytes would take seconds. */
const textOf = (value: unknown): string => {
  if (typeof value === "string") return value;
  try {
    return JSON.stringify(boundedFields(value)) ?? String(value);
  } catch {
    return "(a value that is no JSON)"; // a cycle, or a bigint
  }
};

const fieldsOf = (values: readonly unknown[]): Record<string, unknown> => {
  const [error] = values.filter((value) => value instanceof Error);
  const others = values.filter((value) => value !== error && value !== undefined);
  const fields = others.length === 1 ? others[0] : others;
  const text = others.length === 0 ? "" : textOf(fields);
  return {
    ...(others.length === 0
      ? {}
      : { fields: text.length <= CHARACTERS_AT_MOST && text.startsWith("{") ? fields : boundedText(text) }),
    ...(error === undefined ? {} : { err: error }),
  };
};

/** Bounded lines with run and node. */
export const createSdkLogger = (logger: Logger): SdkLogger => {
  const write = (
    severity: (typeof SDK_SEVERITIES)[keyof typeof SDK_SEVERITIES],
    [first, ...more]: unknown[],
  ) => {
    if (!logger.isLevelEnabled(severity)) return;
    if (typeof first !== "object" || first === null || first instanceof Error) {
      const text = first instanceof Error ? first.message : textOf(first);
      const values = first instanceof Error ? [first, ...more] : more;
      return logger[severity]({ ...logOrigin(), ...fieldsOf(values) }, boundedText(text));
    }
    const { message = "", ...rest } = first as { message?: unknown };
    const values = Object.keys(rest).length > 0 ? [rest, ...more] : more;
    logger[severity]({ ...logOrigin(), ...fieldsOf(values) }, boundedText(textOf(message)));
  };
  const sdkLogger = Object.fromEntries(
    Object.entries(SDK_SEVERITIES).map(([method, severity]) => [
      method,
      (...values: unknown[]) => {
        write(severity, values);
        return sdkLogger;
      },
    ]),
  ) as SdkLogger;
  return sdkLogger;
};
