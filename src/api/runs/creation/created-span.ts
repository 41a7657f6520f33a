import { context, isSpanContextValid, SpanKind, trace } from "@opentelemetry/api";
import { ATTRIBUTES, SPANS } from "../../../platform/telemetry/names.ts";
import { traceContextOf, tracer, type TraceContext } from "../../../platform/telemetry/telemetry.ts";

/**
 * A span for the creation of a run, below the request. All attempts are its children. Undefined without OpenTelemetry.
 */
export const exportCreation = (runId: string, threadId: string): TraceContext | undefined => {
  const attributes = { [ATTRIBUTES.run]: runId, [ATTRIBUTES.conversation]: threadId };
  const span = tracer().startSpan(SPANS.creation, { kind: SpanKind.PRODUCER, attributes });
  if (!isSpanContextValid(span.spanContext())) return undefined;
  span.end();
  return traceContextOf(trace.setSpan(context.active(), span));
};
