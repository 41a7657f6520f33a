import { version as nodeVersion } from "node:process";
import { Registry } from "prom-client";
import { counterOf, gaugeOf } from "../../platform/metrics/instruments.ts";
import type { ServerMetrics } from "../../platform/metrics/metrics.ts";
import type { CounterName, GaugeName } from "../../platform/metrics/table.ts";
import type { Metrics, ServerInfo } from "./schemas.ts";

interface Server {
  counted: ServerMetrics;
  info: ServerInfo;
  role: string;
}

type Values = Readonly<Record<string, number>>;
const MS_PER_SECOND = 1_000;

/** Figures of one scrape. They have a registry of their own, because most of them may be missing the next time. */
const createSnapshot = () => {
  const registry = new Registry();
  return {
    registry,
    gauge: (name: GaugeName, value: number): void => gaugeOf(registry, name).set(value),
    gauges(name: GaugeName, label: string, values: Values): void {
      const gauge = gaugeOf(registry, name);
      for (const [key, value] of Object.entries(values)) gauge.set({ [label]: key }, value);
    },
    counter: (name: CounterName, value: number): void => counterOf(registry, name).inc(value),
    counters(name: CounterName, label: string, values: Values): void {
      const counter = counterOf(registry, name);
      for (const [key, value] of Object.entries(values)) counter.inc({ [label]: key }, value);
    },
  };
};
type Snapshot = ReturnType<typeof createSnapshot>;

const writeProcess = ({ gauge, gauges, counter }: Snapshot, { process, database, tables }: Metrics): void => {
  gauge("uptime_seconds", process.uptime_seconds);
  counter("cpu_seconds_total", process.cpu_seconds);
  gauge("resident_memory_bytes", process.resident_memory_bytes);
  gauge("heap_used_bytes", process.heap_used_bytes);
  gauge("external_memory_bytes", process.external_memory_bytes);
  gauges("event_loop_delay_seconds", "quantile", {
    "0.5": process.event_loop_delay_p50_seconds,
    "0.99": process.event_loop_delay_p99_seconds,
    "1": process.event_loop_delay_max_seconds,
  });
  gauge("database_up", database.up ? 1 : 0);
  gauge("database_connections_max", database.connections_max);
  gauge("database_connections", database.connections);
  gauge("database_idle_connections", database.idle_connections);
  gauge("database_waiting", database.waiting);
  if (tables !== undefined) gauges("table_bytes", "table", tables);
};

/** Figures that the database counts. They are missing while it is away. */
const writeCounts = (
  { gauge, gauges }: Snapshot,
  { queue, threads, crons, webhooks, pushes }: Metrics,
): void => {
  if (queue !== undefined) {
    gauges("runs", "status", { pending: queue.num_pending, running: queue.num_running });
    gauge("runs_unhosted", queue.num_unhosted);
  }
  if (threads !== undefined) {
    gauge("threads_expired", threads.num_expired);
    gauge("threads_expired_late_seconds", threads.late_seconds);
  }
  if (crons !== undefined) {
    gauge("crons_scheduled", crons.num_scheduled);
    gauge("crons_due", crons.num_due);
    gauge("crons_late_seconds", crons.late_seconds);
  }
  if (webhooks !== undefined) {
    gauges("webhooks", "state", { pending: webhooks.num_pending, failed: webhooks.num_failed });
    gauge("webhooks_oldest_seconds", webhooks.oldest_seconds);
  }
  if (pushes !== undefined) gauge("pushes_pending", pushes.num_pending);
};

const writeServer = (
  { gauge, gauges, counters }: Snapshot,
  { webhook_tries, push_tries, event_streaming, limits, workers, graph_processes }: Metrics,
): void => {
  if (webhook_tries !== undefined) counters("webhook_tries_total", "result", webhook_tries);
  if (push_tries !== undefined) counters("push_tries_total", "result", push_tries);
  if (event_streaming !== undefined) {
    gauge("event_streams", event_streaming.streams);
    gauge("websockets", event_streaming.sockets);
  }
  if (limits !== undefined) {
    gauge("open_streams", limits.open_streams);
    counters("refused_total", "limit", limits.refused);
  }
  if (workers !== undefined) {
    gauge("worker_slots", workers.max);
    gauge("worker_slots_active", workers.active);
  }
  if (graph_processes !== undefined) {
    const { deaths, ...states } = graph_processes;
    gauges("graph_processes", "state", states);
    counters("graph_process_deaths_total", "reason", deaths);
  }
};

export const toPrometheus = async (metrics: Metrics, { counted, info, role }: Server): Promise<string> => {
  const snapshot = createSnapshot();
  gaugeOf(snapshot.registry, "build_info").set(
    { version: info.threadloom_version, langgraph: info.langgraph_js_version, node: nodeVersion, role },
    1,
  );
  snapshot.gauge("start_time_seconds", counted.startedAt / MS_PER_SECOND);
  writeProcess(snapshot, metrics);
  writeCounts(snapshot, metrics);
  writeServer(snapshot, metrics);
  return await Registry.merge([snapshot.registry, counted.registry]).metrics();
};
