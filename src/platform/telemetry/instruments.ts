import { metrics, type Attributes, type Histogram } from "@opentelemetry/api";
import { ATTRIBUTES, INSTRUMENTS, OPERATIONS, SCOPE, SECONDS_BUCKETS, TOKENS_BUCKETS } from "./names.ts";

const failure = (failed: boolean): Attributes => (failed ? { [ATTRIBUTES.errorType]: "_OTHER" } : {});

/** The metrics of the conventions. All others: `/metrics`, which a collector can read, too. Labels must be bounded. */
export const createInstruments = () => {
  const meter = metrics.getMeter(SCOPE);
  const seconds = (name: string, description: string): Histogram =>
    meter.createHistogram(name, {
      unit: "s",
      description,
      advice: { explicitBucketBoundaries: [...SECONDS_BUCKETS] },
    });
  const modelTime = seconds(INSTRUMENTS.modelTime, "Time of calls of models.");
  const toolTime = seconds(INSTRUMENTS.toolTime, "Time of calls of tools.");
  const attemptTime = seconds(INSTRUMENTS.attemptTime, "Time of the last attempts of runs.");
  const queueTime = seconds(INSTRUMENTS.queueTime, "Time from when runs were due to their first attempts.");
  const requestTime = seconds(INSTRUMENTS.requestTime, "Time of requests, without streams.");
  const tokens = meter.createHistogram(INSTRUMENTS.tokens, {
    unit: "{token}",
    description: "Tokens of calls of models.",
    advice: { explicitBucketBoundaries: [...TOKENS_BUCKETS] },
  });
  return {
    modelCall(model: string, duration: number, failed: boolean): void {
      const { operation, requestModel } = ATTRIBUTES;
      modelTime.record(duration, {
        [operation]: OPERATIONS.model,
        [requestModel]: model,
        ...failure(failed),
      });
    },
    tokensUsed(model: string, type: "input" | "output", count: number): void {
      const { operation, requestModel, tokenType } = ATTRIBUTES;
      tokens.record(count, { [operation]: OPERATIONS.model, [requestModel]: model, [tokenType]: type });
    },
    toolCall(tool: string, duration: number, failed: boolean): void {
      const { operation, tool: name } = ATTRIBUTES;
      toolTime.record(duration, { [operation]: OPERATIONS.tool, [name]: tool, ...failure(failed) });
    },
    runEnded(graph: string, status: string, duration: number): void {
      const { operation, agent, status: ended } = ATTRIBUTES;
      attemptTime.record(duration, {
        [operation]: OPERATIONS.attempt,
        [agent]: graph,
        [ended]: status,
        ...failure(status === "error" || status === "timeout"),
      });
    },
    runBegan(graph: string, duration: number): void {
      queueTime.record(duration, { [ATTRIBUTES.agent]: graph });
    },
    request(method: string, route: string, status: number | undefined, duration: number): void {
      requestTime.record(duration, {
        [ATTRIBUTES.method]: method,
        [ATTRIBUTES.route]: route,
        ...(status === undefined ? {} : { [ATTRIBUTES.statusCode]: status }),
      });
    },
  };
};
