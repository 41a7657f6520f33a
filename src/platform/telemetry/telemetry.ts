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

/** The headers that a propagator writes: `traceparent` and others. JSON. */
export type TraceContext = Readonly<Record<string, string>>;

/** In bytes. Each run stores its own: `traceparent` and `tracestate` have 600 at most. */
const TRACE_CONTEXT_AT_MOST = 1_024;

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

const injected = (from: Context): TraceContext | undefined => {
  const carrier: Record<string, string> = {};
  propagation.inject(from, carrier);
  return Buffer.byteLength(JSON.stringify(carrier)) > TRACE_CONTEXT_AT_MOST ? undefined : carrier;
};

/** Empty if `from` has no span. Leaves out baggage that is too long. */
export const traceContextOf = (from: Context): TraceContext =>
  injected(from) ?? injected(propagation.deleteBaggage(from)) ?? {};

export const contextOf = (carrier: TraceContext | undefined): Context =>
  carrier === undefined ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, carrier);

/** For work that outlives the request that started it, for example through timers. */
export const outsideTraces = <Result>(work: () => Result): Result => context.with(ROOT_CONTEXT, work);

/** For log lines: of the active span, if there is one. */
export const activeTraceIds = (): { trace_id?: string; span_id?: string } => {
  const spanContext = trace.getSpan(context.active())?.spanContext();
  return spanContext === undefined ? {} : { trace_id: spanContext.traceId, span_id: spanContext.spanId };
};
