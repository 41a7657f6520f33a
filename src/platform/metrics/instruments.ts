import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import {
  METRICS,
  type CounterName,
  type GaugeName,
  type HistogramName,
  type LabelsOf,
  type MetricRow,
} from "./table.ts";

const PREFIX = "threadloom_";

const configurationOf = (registry: Registry, name: keyof typeof METRICS) => {
  const { help, labels }: MetricRow = METRICS[name];
  return { name: `${PREFIX}${name}`, help, labelNames: [...labels], registers: [registry] };
};

export const counterOf = (registry: Registry, name: CounterName): Counter =>
  new Counter(configurationOf(registry, name));

export const gaugeOf = (registry: Registry, name: GaugeName): Gauge =>
  new Gauge(configurationOf(registry, name));

/** prom-client throws for other numbers. Clocks jump, and graphs report any tokens. */
export const countable = (value: number): number => (value > 0 && Number.isFinite(value) ? value : 0);

/** Counts by name, in counters that begin with their first value and in all histograms. */
export const countingIn = (registry: Registry) => {
  const counters = new Map<CounterName, Counter>();
  const histograms = new Map(
    Object.entries<MetricRow>(METRICS).flatMap(([name, { buckets }]) =>
      buckets === undefined
        ? []
        : [
            [
              name,
              new Histogram({ ...configurationOf(registry, name as HistogramName), buckets: [...buckets] }),
            ],
          ],
    ),
  );
  return {
    count<Name extends CounterName>(name: Name, labels: LabelsOf<Name>, value = 1): void {
      let counter = counters.get(name);
      if (counter === undefined) counters.set(name, (counter = counterOf(registry, name)));
      counter.inc(labels, countable(value));
    },
    observe<Name extends HistogramName>(name: Name, labels: LabelsOf<Name>, value: number): void {
      histograms.get(name)?.observe(labels, countable(value));
    },
  };
};
