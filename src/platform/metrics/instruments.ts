import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { METRICS, type CounterName, type GaugeName, type HistogramName, type MetricRow } from "./table.ts";

const PREFIX = "threadloom_";

const configurationOf = (registry: Registry, name: keyof typeof METRICS) => {
  const { help, labels = [] }: MetricRow = METRICS[name];
  return { name: `${PREFIX}${name}`, help, labelNames: [...labels], registers: [registry] };
};

export const counterOf = (registry: Registry, name: CounterName): Counter =>
  new Counter(configurationOf(registry, name));

export const gaugeOf = (registry: Registry, name: GaugeName): Gauge =>
  new Gauge(configurationOf(registry, name));

export const histogramOf = (registry: Registry, name: HistogramName): Histogram =>
  new Histogram({ ...configurationOf(registry, name), buckets: [...METRICS[name].buckets] });
