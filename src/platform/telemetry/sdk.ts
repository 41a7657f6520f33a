import { diag, DiagLogLevel } from "@opentelemetry/api";
import type { NodeSDK } from "@opentelemetry/sdk-node";
import type { Logger } from "../lib/logger.ts";
import { within } from "../lib/within.ts";
import { isTelemetryOn } from "./telemetry.ts";

type Environment = Record<string, string | undefined>;

const SIGNALS = ["TRACES", "METRICS"] as const;
const PACKAGE = "@opentelemetry/sdk-node";
const SHUTDOWN_MS = 5_000;
/** The SDK repeats its complaint at each export. */
const REPEATED_AFTER_MS = 60_000;
const COMPLAINTS_AT_MOST = 100;
const COMPLAINT_CHARACTERS = 500;

/** Not the process's: its command line may hold passwords. */
const DEFAULTS = { OTEL_NODE_RESOURCE_DETECTORS: "env,host,os,serviceinstance", OTEL_LOGS_EXPORTER: "none" };

/** Whether the standard variables name a receiver or an exporter. */
export const isTelemetryConfigured = (environment: Readonly<Environment>): boolean => {
  if (environment["OTEL_SDK_DISABLED"]?.toLowerCase() === "true") return false;
  const has = (name: string): boolean => !["", "none", undefined].includes(environment[name]?.trim());
  return (
    has("OTEL_EXPORTER_OTLP_ENDPOINT") ||
    SIGNALS.some((signal) => has(`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`) || has(`OTEL_${signal}_EXPORTER`))
  );
};

/** What the SDK logs: each text once a minute. */
const logComplaints = (logger: Logger): void => {
  const seen = new Map<string, number>();
  const complain = (message: string): void => {
    const text = message.slice(0, COMPLAINT_CHARACTERS);
    const now = performance.now();
    if (now - (seen.get(text) ?? -Infinity) < REPEATED_AFTER_MS) return;
    if (seen.size === COMPLAINTS_AT_MOST) seen.clear();
    seen.set(text, now);
    logger.warn({ reason: text }, "OpenTelemetry reports a problem");
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
  const isNamed =
    environment["OTEL_SERVICE_NAME"] !== undefined ||
    environment["OTEL_RESOURCE_ATTRIBUTES"]?.includes("service.name=") === true;
  const Sdk = await load(logger);
  if (Sdk === undefined) return undefined;
  const sdk = new Sdk(isNamed ? {} : { serviceName: "threadloom" });
  if (environment["OTEL_LOG_LEVEL"] === undefined) logComplaints(logger);
  sdk.start();
  return {
    async close() {
      await within(SHUTDOWN_MS, sdk.shutdown()).catch((error: unknown) => {
        logger.warn({ err: error }, "OpenTelemetry could not send everything");
      });
    },
  };
};
