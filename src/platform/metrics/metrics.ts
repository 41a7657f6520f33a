import { Registry } from "prom-client";
import { boundedLabel } from "./bounded-label.ts";
import type { ModelCall, RequestFigures, ToolCall } from "./figures.ts";
import { counterOf, histogramOf } from "./instruments.ts";
import { createInstruments } from "../telemetry/instruments.ts";

export interface MetricsOptions {
  /** Whether langgraph.json names the graph. Runs of others count as "other". */
  isGraph?: (graphId: string) => boolean;
  /** Also by OpenTelemetry. */
  telemetry?: boolean;
}

/** Values of one label; more count as "other". */
const GRAPHS_AT_MOST = 100;
const MODELS_AT_MOST = 50;
const TOOLS_AT_MOST = 100;
const STATUS_CLASS = 100;

/** prom-client throws for other numbers. Clocks jump, and graphs report any tokens. */
const countable = (value: number): number => (value > 0 && Number.isFinite(value) ? value : 0);

/**
 * What one server counts while it works: a registry of its own, because servers may share a process. Each call costs a
 * microsecond, and no statement.
 */
export const createMetrics = ({ isGraph, telemetry = false }: MetricsOptions = {}) => {
  const registry = new Registry();
  const exported = telemetry ? createInstruments() : undefined;
  const startedAt = Date.now();
  const graphOf = boundedLabel(GRAPHS_AT_MOST, isGraph);
  const modelOf = boundedLabel(MODELS_AT_MOST);
  const toolOf = boundedLabel(TOOLS_AT_MOST);

  const runsEnded = counterOf(registry, "runs_ended_total");
  const runQueue = histogramOf(registry, "run_queue_seconds");
  const runTime = histogramOf(registry, "run_seconds");
  const firstEvent = histogramOf(registry, "run_first_event_seconds");
  const attemptsLost = counterOf(registry, "attempts_lost_total");
  const modelTime = histogramOf(registry, "model_call_seconds");
  const modelErrors = counterOf(registry, "model_call_errors_total");
  const tokens = counterOf(registry, "model_tokens_total");
  const toolTime = histogramOf(registry, "tool_call_seconds");
  const toolErrors = counterOf(registry, "tool_call_errors_total");
  const checkpointWrites = histogramOf(registry, "checkpoint_write_seconds");
  const logAppends = histogramOf(registry, "event_log_append_seconds");
  const loggedEvents = counterOf(registry, "event_log_events_total");
  const requests = counterOf(registry, "http_requests_total");
  const requestTime = histogramOf(registry, "http_request_seconds");
  // A rate needs the zero before the first loss.
  for (const process of ["server", "graph process"]) attemptsLost.inc({ process }, 0);

  return {
    registry,
    /** Milliseconds since 1970. */
    startedAt,

    /** `seconds`: since the run was due. */
    runBegan(graphId: string, seconds: number): void {
      const graph = graphOf(graphId);
      runQueue.observe({ graph }, countable(seconds));
      exported?.runBegan(graph, countable(seconds));
    },
    /** `seconds`: since the run was due. */
    runShowed(graphId: string, seconds: number): void {
      firstEvent.observe({ graph: graphOf(graphId) }, countable(seconds));
    },
    /** `seconds`: of the last attempt; undefined: this process did not execute it. */
    runEnded(graphId: string, status: string, seconds: number | undefined): void {
      const graph = graphOf(graphId);
      runsEnded.inc({ graph, status });
      if (seconds === undefined) return;
      runTime.observe({ graph }, countable(seconds));
      exported?.runEnded(graph, status, countable(seconds));
    },
    attemptsLost(process: "server" | "graph process", count: number): void {
      attemptsLost.inc({ process }, count);
    },

    modelCall({ model: name, seconds, failed }: ModelCall): void {
      const model = modelOf(name);
      modelTime.observe({ model }, countable(seconds));
      modelErrors.inc({ model }, failed ? 1 : 0);
      exported?.modelCall(model, countable(seconds), failed);
    },
    tokensUsed(name: string, inputTokens: number, outputTokens: number): void {
      const model = modelOf(name);
      tokens.inc({ model, direction: "input" }, countable(inputTokens));
      tokens.inc({ model, direction: "output" }, countable(outputTokens));
      exported?.tokensUsed(model, "input", countable(inputTokens));
      exported?.tokensUsed(model, "output", countable(outputTokens));
    },
    toolCall({ tool: name, seconds, failed }: ToolCall): void {
      const tool = toolOf(name);
      toolTime.observe({ tool }, countable(seconds));
      toolErrors.inc({ tool }, failed ? 1 : 0);
      exported?.toolCall(tool, countable(seconds), failed);
    },

    /** One statement. */
    checkpointsWritten: (seconds: number): void => checkpointWrites.observe(countable(seconds)),
    /** One statement. */
    eventsLogged(count: number, seconds: number): void {
      loggedEvents.inc(count);
      logAppends.observe(countable(seconds));
    },

    request({ method, route, status: code, seconds, isLong }: RequestFigures): void {
      const status = code === undefined ? "aborted" : `${Math.floor(code / STATUS_CLASS)}xx`;
      requests.inc({ method, route, status });
      if (!isLong) requestTime.observe({ method, route }, countable(seconds));
      if (!isLong) exported?.request(method, route, code, countable(seconds));
    },
  };
};

export type ServerMetrics = ReturnType<typeof createMetrics>;
