import Fastify from "fastify";
import { onTestFinished } from "vitest";

interface Value {
  stringValue?: string;
  intValue?: number;
  doubleValue?: number;
  boolValue?: boolean;
  arrayValue?: { values: Value[] };
}
interface Attribute {
  key: string;
  value: Value;
}
interface SentSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  attributes: Attribute[];
  status: { code?: number; message?: string };
}

export interface ReceivedSpan {
  traceId: string;
  spanId: string;
  parent: string | undefined;
  name: string;
  kind: number;
  attributes: Record<string, unknown>;
  status: SentSpan["status"];
  service: unknown;
}

const valueOf = ({ stringValue, intValue, doubleValue, boolValue, arrayValue }: Value): unknown =>
  stringValue ??
  (intValue === undefined ? undefined : Number(intValue)) ??
  doubleValue ??
  boolValue ??
  arrayValue?.values.map(valueOf);
const valuesOf = (attributes: Attribute[]): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, valueOf(value)]));

/** A receiver of OTLP over HTTP, as JSON. */
export const aReceiver = async () => {
  const spans: ReceivedSpan[] = [];
  const metrics = new Map<string, { unit: string; points: Record<string, unknown>[] }>();
  const app = Fastify({ bodyLimit: 64 * 1024 * 1024 });
  app.post("/v1/traces", async (request) => {
    const { resourceSpans } = request.body as {
      resourceSpans: { resource: { attributes: Attribute[] }; scopeSpans: { spans: SentSpan[] }[] }[];
    };
    for (const { resource, scopeSpans } of resourceSpans)
      for (const { traceId, spanId, parentSpanId, name, kind, attributes, status } of scopeSpans.flatMap(
        (one) => one.spans,
      ))
        spans.push({
          traceId,
          spanId,
          parent: parentSpanId,
          name,
          kind,
          attributes: valuesOf(attributes),
          status,
          service: valuesOf(resource.attributes)["service.name"],
        });
    return {};
  });
  app.post("/v1/metrics", async (request) => {
    const { resourceMetrics } = request.body as {
      resourceMetrics: {
        scopeMetrics: {
          metrics: {
            name: string;
            unit: string;
            histogram?: { dataPoints: { attributes: Attribute[]; count: number; sum: number }[] };
          }[];
        }[];
      }[];
    };
    for (const { name, unit, histogram } of resourceMetrics.flatMap(({ scopeMetrics }) =>
      scopeMetrics.flatMap((one) => one.metrics),
    ))
      metrics.set(name, {
        unit,
        points: (histogram?.dataPoints ?? []).map(({ attributes, count, sum }) => ({
          ...valuesOf(attributes),
          count: Number(count),
          sum,
        })),
      });
    return {};
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  onTestFinished(() => app.close());
  return { url, spans, metrics };
};
