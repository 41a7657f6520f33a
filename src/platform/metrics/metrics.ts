import { Registry } from "prom-client";
import { countable, countingIn } from "./instruments.ts";
import { createInstruments, failure } from "../telemetry/instruments.ts";
import { ATTRIBUTES, OPERATIONS } from "../telemetry/names.ts";

export interface RequestFigures {
  method: string;
  /** The pattern of the route, not the path. */
  route: string;
  /** Undefined: the client left before the answer. */
  status: number | undefined;
  seconds: number;
  /** A stream, or a request that waits for a run. */
  isLong: boolean;
}

export interface ModelCall {
  model: string;
  seconds: number;
  failed: boolean;
}

export interface ToolCall {
  tool: string;
  seconds: number;
  failed: boolean;
}

interface MetricsOptions {
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

const OTHER = "other";
const CHARACTERS_AT_MOST = 100;

/**
 * Each value of a label is a time series in this process and in Prometheus. The returned function gives "other" for a
 * long value, an unknown one, and each new one after the first `atMost`.
 */
const boundedLabel = (
  atMost: number,
  isKnown: (value: string) => boolean = () => true,
): ((value: string) => string) => {
  const seen = new Set<string>();
  return (value) => {
    if (seen.has(value)) return value;
    // Different lone surrogates would become the same character, and Prometheus refuses the same series twice.
    const isValid = value.length <= CHARACTERS_AT_MOST && value.isWellFormed();
    if (seen.size >= atMost || !isValid || !isKnown(value)) return OTHER;
    seen.add(value);
    return value;
  };
};

const ofModel = (model: string) => ({
  [ATTRIBUTES.operation]: OPERATIONS.model,
  [ATTRIBUTES.requestModel]: model,
});

/**
 * What one server counts while it works: a registry of its own, because servers may share a process. Each call costs a
 * microsecond, and no statement.
 */
export const createMetrics = ({ isGraph, telemetry = false }: MetricsOptions = {}) => {
  const registry = new Registry();
  const record = telemetry ? createInstruments() : undefined;
  const startedAt = Date.now();
  const graphOf = boundedLabel(GRAPHS_AT_MOST, isGraph);
  const modelOf = boundedLabel(MODELS_AT_MOST);
  const toolOf = boundedLabel(TOOLS_AT_MOST);

  const { count, observe } = countingIn(registry);
  count("event_log_events_total", {}, 0);
  // A rate needs the zero before the first loss.
  for (const process of ["server", "graph process"]) count("attempts_lost_total", { process }, 0);

  return {
    registry,
    /** Milliseconds since 1970. */
    startedAt,

    /** `seconds`: since the run was due. */
    runBegan(graphId: string, seconds: number): void {
      const graph = graphOf(graphId);
      observe("run_queue_seconds", { graph }, seconds);
      record?.("queueTime", countable(seconds), { [ATTRIBUTES.agent]: graph });
    },
    /** `seconds`: since the run was due. */
    runShowed(graphId: string, seconds: number): void {
      observe("run_first_event_seconds", { graph: graphOf(graphId) }, seconds);
    },
    /** `seconds`: of the last attempt; undefined: this process did not execute it. */
    runEnded(graphId: string, status: string, seconds: number | undefined): void {
      const graph = graphOf(graphId);
      count("runs_ended_total", { graph, status });
      if (seconds === undefined) return;
      observe("run_seconds", { graph }, seconds);
      record?.("attemptTime", countable(seconds), {
        [ATTRIBUTES.operation]: OPERATIONS.attempt,
        [ATTRIBUTES.agent]: graph,
        [ATTRIBUTES.status]: status,
        ...failure(status === "error" || status === "timeout"),
      });
    },
    attemptsLost(process: "server" | "graph process", attempts: number): void {
      count("attempts_lost_total", { process }, attempts);
    },

    modelCall({ model: name, seconds, failed }: ModelCall): void {
      const model = modelOf(name);
      observe("model_call_seconds", { model }, seconds);
      count("model_call_errors_total", { model }, failed ? 1 : 0);
      record?.("modelTime", countable(seconds), { ...ofModel(model), ...failure(failed) });
    },
    tokensUsed(name: string, inputTokens: number, outputTokens: number): void {
      const model = modelOf(name);
      for (const [direction, used] of [
        ["input", inputTokens],
        ["output", outputTokens],
      ] as const) {
        count("model_tokens_total", { model, direction }, used);
        record?.("tokens", countable(used), { ...ofModel(model), [ATTRIBUTES.tokenType]: direction });
      }
    },
    toolCall({ tool: name, seconds, failed }: ToolCall): void {
      const tool = toolOf(name);
      observe("tool_call_seconds", { tool }, seconds);
      count("tool_call_errors_total", { tool }, failed ? 1 : 0);
      record?.("toolTime", countable(seconds), {
        [ATTRIBUTES.operation]: OPERATIONS.tool,
        [ATTRIBUTES.tool]: tool,
        ...failure(failed),
      });
    },

    /** One statement. */
    checkpointsWritten: (seconds: number): void => observe("checkpoint_write_seconds", {}, seconds),
    /** One statement. */
    eventsLogged(events: number, seconds: number): void {
      count("event_log_events_total", {}, events);
      observe("event_log_append_seconds", {}, seconds);
    },

    request({ method, route, status: code, seconds, isLong }: RequestFigures): void {
      const status = code === undefined ? "aborted" : `${Math.floor(code / STATUS_CLASS)}xx`;
      count("http_requests_total", { method, route, status });
      if (isLong) return;
      observe("http_request_seconds", { method, route }, seconds);
      record?.("requestTime", countable(seconds), {
        [ATTRIBUTES.method]: method,
        [ATTRIBUTES.route]: route,
        ...(code === undefined ? {} : { [ATTRIBUTES.statusCode]: code }),
      });
    },
  };
};

export type ServerMetrics = ReturnType<typeof createMetrics>;
