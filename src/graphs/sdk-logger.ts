import { boundedFields, boundedText } from "../platform/lib/log-fields.ts";
import type { Logger } from "../platform/lib/logger.ts";
import { logOrigin } from "./log-origin.ts";

/** Every copy of `@langchain/langgraph-sdk/logging` reads this key of `globalThis`. */
export const SDK_LOGGER = Symbol.for("langgraph.api.sdk-logger");

const SEVERITIES = {
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
export type SdkLogger = { readonly [Method in keyof typeof SEVERITIES]: Log };

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
  const write = (severity: (typeof SEVERITIES)[keyof typeof SEVERITIES], [first, ...more]: unknown[]) => {
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
    Object.entries(SEVERITIES).map(([method, severity]) => [
      method,
      (...values: unknown[]) => {
        write(severity, values);
        return sdkLogger;
      },
    ]),
  ) as SdkLogger;
  return sdkLogger;
};
