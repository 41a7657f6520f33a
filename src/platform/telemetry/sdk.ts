import { context, diag, DiagLogLevel, ROOT_CONTEXT } from "@opentelemetry/api";
import type { NodeSDK } from "@opentelemetry/sdk-node";
import type { Logger } from "../lib/logger.ts";
import { within } from "../lib/within.ts";
import { isTelemetryOn } from "./telemetry.ts";

type Environment = Record<string, string | undefined>;

const SIGNALS = ["TRACES", "METRICS"] as const;
const PACKAGE = "@opentelemetry/sdk-node";
const SHUTDOWN_MS = 5_000;
const REPEATED_AFTER_MS = 60_000;
const COMPLAINT_CHARACTERS = 500;

/** Not the process's: its command line may hold passwords. */
const DEFAULTS = { OTEL_NODE_RESOURCE_DETECTORS: "env,host,os,serviceinstance", OTEL_LOGS_EXPORTER: "none" };

/** Whether the standard variables name a receiver or an exporter for this signal. */
const isExported = (signal: (typeof SIGNALS)[number], environment: Readonly<Environment>): boolean => {
  const valueOf = (name: string): string => environment[name]?.trim() ?? "";
  const exporter = valueOf(`OTEL_${signal}_EXPORTER`);
  if (exporter !== "") return exporter !== "none";
  return valueOf("OTEL_EXPORTER_OTLP_ENDPOINT") + valueOf(`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`) !== "";
};

/** Whether the standard variables ask for spans or metrics. */
export const isTelemetryConfigured = (environment: Readonly<Environment>): boolean =>
  environment["OTEL_SDK_DISABLED"]?.trim().toLowerCase() !== "true" &&
  SIGNALS.some((signal) => isExported(signal, environment));

/** The SDK logs an error as JSON, with its stack. `data` is what the receiver answered. */
const reasonOf = (logged: string): string => {
  try {
    const { message, code, data } = JSON.parse(logged) as Record<string, unknown>;
    const parts = [message || code, data].filter((part) => typeof part === "string" && part !== "");
    return parts.length === 0 ? logged : parts.join(": ");
  } catch {
    return logged;
  }
};

/** Logs the SDK's messages, one a minute at most: it repeats its complaint at each export. */
const logComplaints = (logger: Logger): void => {
  let loggedAt = -Infinity;
  const complain = (...logged: unknown[]): void => {
    const parts = logged.map((part) => (typeof part === "string" ? reasonOf(part) : String(part)));
    const reason = parts.join(": ").slice(0, COMPLAINT_CHARACTERS);
    // It says "SDK will not be initialized", but only spans are switched off, as the operator asked.
    if (reason.startsWith('OTEL_TRACES_EXPORTER contains "none"')) return;
    if (performance.now() - loggedAt < REPEATED_AFTER_MS) return;
    loggedAt = performance.now();
    // The active span is of any request.
    context.with(ROOT_CONTEXT, () => logger.warn({ reason }, "OpenTelemetry reports a problem"));
  };
  const silent = (): void => undefined;
  diag.setLogger(
    { error: complain, warn: complain, info: silent, debug: silent, verbose: silent },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
};

/** Undefined if the package is missing: a server that sees nothing is better than none. */
const load = async (logger: Logger): Promise<typeof NodeSDK | undefined> => {
  try {
    return ((await import(PACKAGE)) as { NodeSDK: typeof NodeSDK }).NodeSDK;
  } catch (error) {
    logger.warn(
      { reason: (error as Error).message },
      `variables OTEL_… ask for OpenTelemetry, but ${PACKAGE} can't be loaded, so nothing is exported: install it with npm install ${PACKAGE}`,
    );
    return undefined;
  }
};

export interface TelemetrySdk {
  /** Sends what waits, for some seconds. Never rejects. */
  close(): Promise<void>;
}

/**
 * Registers the SDK for this process. Undefined if the variables do not ask for it, or if the project has registered one.
 * Changes defaults of `environment`, which must be the process's.
 */
export const startTelemetry = async (
  environment: Environment,
  logger: Logger,
): Promise<TelemetrySdk | undefined> => {
  if (!isTelemetryConfigured(environment) || isTelemetryOn()) return undefined;
  for (const [name, value] of Object.entries(DEFAULTS)) environment[name] ??= value;
  const signals = SIGNALS.filter((signal) => isExported(signal, environment));
  // Otherwise the SDK sends a signal without a receiver to its default address.
  for (const signal of SIGNALS)
    if (!signals.includes(signal)) environment[`OTEL_${signal}_EXPORTER`] = "none";
  const isNamed =
    environment["OTEL_SERVICE_NAME"] !== undefined ||
    environment["OTEL_RESOURCE_ATTRIBUTES"]?.includes("service.name=") === true;
  const Sdk = await load(logger);
  if (Sdk === undefined) return undefined;
  const sdk = new Sdk(isNamed ? {} : { serviceName: "threadloom" });
  if (environment["OTEL_LOG_LEVEL"] === undefined) logComplaints(logger);
  sdk.start();
  logger.info({ signals: signals.map((signal) => signal.toLowerCase()) }, "exporting by OpenTelemetry");
  return {
    async close() {
      await within(SHUTDOWN_MS, sdk.shutdown()).catch((error: unknown) => {
        logger.warn({ reason: (error as Error).message }, "OpenTelemetry could not send everything");
      });
    },
  };
};
