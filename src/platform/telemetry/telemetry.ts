import {
  context,
  metrics,
  propagation,
  ProxyTracerProvider,
  ROOT_CONTEXT,
  trace,
  type Context,
  type Tracer,
} from "@opentelemetry/api";
import { SCOPE } from "./names.ts";

/** What a propagator writes: `traceparent`, and further headers of the trace. JSON. */
export type TraceContext = Readonly<Record<string, string>>;

/** In characters; longer ones are dropped. The headers of a request have 16 KB at most. */
const TRACE_CONTEXT_AT_MOST = 8_192;

const hasTracer = (): boolean => {
  const provider = trace.getTracerProvider();
  // Another copy of the API may have registered its own class.
  return (
    !(provider instanceof ProxyTracerProvider) ||
    provider.getDelegate() !== new ProxyTracerProvider().getDelegate()
  );
};

/** Without an SDK, the API answers the same object each time. */
const hasMeter = (): boolean =>
  metrics.getMeterProvider().getMeter("a") !== metrics.getMeterProvider().getMeter("b");

/** Whether an SDK of OpenTelemetry is registered in this process: `sdk.ts`, or one of the project. */
export const isTelemetryOn = (): boolean => hasTracer() || hasMeter();

/** Does nothing without an SDK. Not a constant: a copy of the API keeps its own answer when another copy registers the SDK. */
export const tracer = (): Tracer => trace.getTracer(SCOPE);

/** Empty if `from` has no span. */
export const traceContextOf = (from: Context): TraceContext => {
  const carrier: Record<string, string> = {};
  propagation.inject(from, carrier);
  return JSON.stringify(carrier).length > TRACE_CONTEXT_AT_MOST ? {} : carrier;
};

export const contextOf = (carrier: TraceContext | undefined): Context =>
  carrier === undefined ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, carrier);

/** For log lines: of the active span, if there is one. */
export const activeTraceIds = (): { trace_id?: string; span_id?: string } => {
  const spanContext = trace.getSpan(context.active())?.spanContext();
  return spanContext === undefined ? {} : { trace_id: spanContext.traceId, span_id: spanContext.spanId };
};
