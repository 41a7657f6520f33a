import { context, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import type { SpanExport } from "../../graphs/trace/exported-spans.ts";
import type { ClaimedRunRow } from "../../platform/database/tables.ts";
import { ATTRIBUTES, OPERATIONS, SPANS } from "../../platform/telemetry/names.ts";
import { contextOf, traceContextOf, tracer, type TraceContext } from "../../platform/telemetry/telemetry.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import type { UsageTotal } from "./attempt-records.ts";

/** Exports the spans of runs by OpenTelemetry. */
export interface TelemetryOptions {
  /** Whether arguments, results and messages are exported. */
  contents: boolean;
}

export interface ExportedAttempt {
  /** For the spans of the graph. */
  readonly spans: SpanExport;
  /** For log lines. */
  readonly traceId: string;
  /** Otherwise the attempt runs in the context of the request that woke the worker. */
  run<Result>(work: () => Result): Result;
  /** Undefined: the run continues elsewhere. */
  end(ending: { status: string; error: JsonObject | null; usage?: Readonly<UsageTotal> } | undefined): void;
}

/** Stored with the run: its attempts are children of the request, also at other servers. */
const storedIn = ({ kwargs }: ClaimedRunRow): TraceContext | undefined =>
  kwargs["trace_context"] as TraceContext | undefined;

/** `queued`: in seconds; undefined for later attempts. */
export const exportAttempt = (
  run: ClaimedRunRow,
  queued: number | undefined,
  { contents }: TelemetryOptions,
): ExportedAttempt => {
  const parent = contextOf(storedIn(run));
  const attributes = {
    [ATTRIBUTES.operation]: OPERATIONS.attempt,
    [ATTRIBUTES.agent]: run.graph_id,
    [ATTRIBUTES.agentId]: run.assistant_id,
    [ATTRIBUTES.conversation]: run.thread_id,
    [ATTRIBUTES.run]: run.run_id,
    [ATTRIBUTES.attempt]: run.attempt,
    [ATTRIBUTES.queueSeconds]: queued,
  };
  const kind = SpanKind.CONSUMER;
  const span = tracer().startSpan(SPANS.attempt(run.graph_id), { kind, attributes }, parent);
  const inside = trace.setSpan(parent, span);
  return {
    spans: { parent: traceContextOf(inside), contents },
    traceId: span.spanContext().traceId,
    run: (work) => context.with(inside, work),
    end(ending) {
      const { status, error, usage } = ending ?? {};
      const failed = status === "error" || status === "timeout";
      span.setAttributes({
        [ATTRIBUTES.status]: status ?? "continues elsewhere",
        [ATTRIBUTES.inputTokens]: usage?.input_tokens,
        [ATTRIBUTES.outputTokens]: usage?.output_tokens,
        [ATTRIBUTES.errorType]: failed ? String(error?.error ?? status).slice(0, 100) : undefined,
      });
      if (failed) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    },
  };
};
