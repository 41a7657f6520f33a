import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { RequestFigures } from "./figures.ts";

/** Milliseconds. */
const BUCKETS = [10, 100, 500, 1_000, 5_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000];
const MS_PER_SECOND = 1_000;

export interface HostedFigures {
  runs: { pending: number; running: number } | undefined;
  workers: { max: number; active: number } | undefined;
  pool: { max: number; size: number; available: number };
}

/** `/threads/:thread_id` → `/threads/{thread_id}` */
const pathOf = (route: string): string => route.replaceAll(/:(\w+)/g, "{$1}");

/** The metrics of the hosted server by their names there, so that dashboards of it show this server. */
export const createHostedNames = () => {
  const registry = new Registry();
  const of = (name: string, help: string, labelNames: string[] = []) => ({
    ...{ name: `lg_api_${name}`, help, labelNames },
    registers: [registry],
  });
  const requests = new Counter(of("http_requests_total", "HTTP requests.", ["method", "path", "status"]));
  const latency = new Histogram({
    ...of("http_requests_latency", "Milliseconds of HTTP requests.", ["method", "path"]),
    buckets: BUCKETS,
  });
  const wait = new Histogram({
    ...of("run_queue_wait_time_1st_attempt", "Milliseconds that runs waited for their first attempt."),
    buckets: BUCKETS,
  });
  return {
    request({ method, route, status, seconds }: RequestFigures): void {
      // The hosted server counts only requests that it answered.
      if (status === undefined) return;
      const path = pathOf(route);
      requests.inc({ method, path, status: String(status) });
      latency.observe({ method, path }, seconds * MS_PER_SECOND);
    },
    queued: (seconds: number): void => wait.observe(seconds * MS_PER_SECOND),
    /** The text for Prometheus. */
    async text({ runs, workers, pool }: HostedFigures): Promise<string> {
      const read = new Registry();
      const write = (name: string, help: string, value: number): void =>
        new Gauge({ ...of(name, help), registers: [read] }).set(value);
      if (runs !== undefined) {
        write("num_pending_runs", "Pending runs.", runs.pending);
        write("num_running_runs", "Running runs.", runs.running);
      }
      if (workers !== undefined && workers.max > 0) {
        write("workers_max", "Runs that this process may execute at once.", workers.max);
        write("workers_active", "Runs that this process executes.", workers.active);
        write("workers_available", "Runs that this process may still begin.", workers.max - workers.active);
      }
      write("pg_pool_max", "Connections that the pool may open.", pool.max);
      write("pg_pool_size", "Open connections of the pool.", pool.size);
      write("pg_pool_available", "Idle connections of the pool.", pool.available);
      return await Registry.merge([registry, read]).metrics();
    },
  };
};
