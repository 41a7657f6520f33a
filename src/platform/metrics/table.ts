/** Seconds. */
const REQUEST = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const STATEMENT = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 15];
const QUEUE = [0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800];
const RUN = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3_600];
/** The buckets of OpenTelemetry's conventions for generative AI. */
const CALL = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

export interface MetricRow {
  kind: "counter" | "gauge" | "histogram";
  help: string;
  labels?: readonly string[];
  /** Of a histogram, in the unit of its name. */
  buckets?: readonly number[];
}

/** All metrics; each name begins with `threadloom_`. "Of all" figures come from the database. */
export const METRICS = {
  build_info: {
    kind: "gauge",
    help: "Always 1; the labels say what runs.",
    labels: ["version", "langgraph", "node", "role"],
  },
  start_time_seconds: { kind: "gauge", help: "When the server started, in seconds since 1970." },
  uptime_seconds: { kind: "gauge", help: "Time since the process started." },
  cpu_seconds_total: { kind: "counter", help: "CPU time of the process." },
  resident_memory_bytes: { kind: "gauge", help: "Resident memory." },
  heap_used_bytes: { kind: "gauge", help: "Used JavaScript heap." },
  external_memory_bytes: { kind: "gauge", help: "Memory of buffers." },
  event_loop_delay_seconds: {
    kind: "gauge",
    help: "By how much timers are late, since the scrape before the last.",
    labels: ["quantile"],
  },

  database_up: { kind: "gauge", help: "Whether the database answers." },
  database_connections_max: { kind: "gauge", help: "Connections that the pool may open." },
  database_connections: { kind: "gauge", help: "Open connections of the pool." },
  database_idle_connections: { kind: "gauge", help: "Idle connections." },
  database_waiting: { kind: "gauge", help: "Statements that wait for a connection." },
  table_bytes: {
    kind: "gauge",
    help: "Size of a table with its indexes, of all processes; read once a minute.",
    labels: ["table"],
  },

  runs: { kind: "gauge", help: "Runs that have not ended, of all processes.", labels: ["status"] },
  runs_unhosted: { kind: "gauge", help: "Runs that wait for a graph that no living worker hosts." },
  runs_ended_total: {
    kind: "counter",
    help: "Runs that this process ended, since its start.",
    labels: ["graph", "status"],
  },
  run_queue_seconds: {
    kind: "histogram",
    help: "From the time when a run was due to the start of its first attempt.",
    labels: ["graph"],
    buckets: QUEUE,
  },
  run_seconds: {
    kind: "histogram",
    help: "Duration of the last attempt of a run.",
    labels: ["graph"],
    buckets: RUN,
  },
  run_first_event_seconds: {
    kind: "histogram",
    help: "From the time when a run was due to its first event after metadata, if it had a reader by then.",
    labels: ["graph"],
    buckets: RUN,
  },
  attempts_lost_total: {
    kind: "counter",
    help: "Attempts that ended with their process, by the process.",
    labels: ["process"],
  },
  worker_slots: { kind: "gauge", help: "Runs that this process may execute at once." },
  worker_slots_active: { kind: "gauge", help: "Runs that this process executes." },
  graph_processes: { kind: "gauge", help: "Processes that execute graphs.", labels: ["state"] },
  graph_process_deaths_total: {
    kind: "counter",
    help: "Processes of graphs that ended unasked.",
    labels: ["reason"],
  },

  model_call_seconds: {
    kind: "histogram",
    help: "Duration of a graph's call of a model.",
    labels: ["model"],
    buckets: CALL,
  },
  model_call_errors_total: { kind: "counter", help: "Calls of models that failed.", labels: ["model"] },
  model_tokens_total: {
    kind: "counter",
    help: "Tokens that models received and returned.",
    labels: ["model", "direction"],
  },
  tool_call_seconds: {
    kind: "histogram",
    help: "Duration of a graph's call of a tool.",
    labels: ["tool"],
    buckets: CALL,
  },
  tool_call_errors_total: { kind: "counter", help: "Calls of tools that failed.", labels: ["tool"] },

  checkpoint_write_seconds: {
    kind: "histogram",
    help: "Duration of the statements that store checkpoints.",
    buckets: STATEMENT,
  },
  event_log_append_seconds: {
    kind: "histogram",
    help: "Duration of the statements that append to the event log.",
    buckets: STATEMENT,
  },
  event_log_events_total: { kind: "counter", help: "Events that were appended to the event log." },

  http_requests_total: {
    kind: "counter",
    help: "Answered requests. The status is aborted if the client left before the answer.",
    labels: ["method", "route", "status"],
  },
  http_request_seconds: {
    kind: "histogram",
    help: "Duration of requests, except streams and those that wait for a run.",
    labels: ["method", "route"],
    buckets: REQUEST,
  },
  event_streams: {
    kind: "gauge",
    help: "Streams of threads that clients read here, over server-sent events and WebSockets.",
  },
  websockets: { kind: "gauge", help: "WebSockets that clients hold open here." },
  open_streams: {
    kind: "gauge",
    help: "Streams, WebSockets and waiting requests that callers have open here.",
  },
  refused_total: {
    kind: "counter",
    help: "Requests that were refused since the start, by the limit that was reached.",
    labels: ["limit"],
  },

  threads_expired: {
    kind: "gauge",
    help: "Threads whose time is over and that are not removed yet, of all processes; 10000 are counted at most.",
  },
  threads_expired_late_seconds: {
    kind: "gauge",
    help: "For how long the time of the first of those threads has been over.",
  },
  crons_scheduled: { kind: "gauge", help: "Crons that will be fired, of all processes." },
  crons_due: { kind: "gauge", help: "Crons that are due and not fired yet, of all processes." },
  crons_late_seconds: {
    kind: "gauge",
    help: "For how long the first cron is due that is not fired yet, of all processes.",
  },
  webhooks: {
    kind: "gauge",
    help: "Deliveries of webhooks that are not made, of all processes.",
    labels: ["state"],
  },
  webhooks_oldest_seconds: {
    kind: "gauge",
    help: "For how long the first run has ended whose webhook is not delivered, of all processes.",
  },
  webhook_tries_total: {
    kind: "counter",
    help: "Tries to deliver webhooks since the start, by result.",
    labels: ["result"],
  },
  pushes_pending: {
    kind: "gauge",
    help: "Push notifications of A2A that are not delivered, of all processes.",
  },
  push_tries_total: {
    kind: "counter",
    help: "Tries to deliver push notifications since the start, by result.",
    labels: ["result"],
  },
} as const satisfies Readonly<Record<string, MetricRow>>;

export type MetricName = keyof typeof METRICS;

type NamesOf<Kind extends MetricRow["kind"]> = {
  [Name in MetricName]: (typeof METRICS)[Name]["kind"] extends Kind ? Name : never;
}[MetricName];
export type CounterName = NamesOf<"counter">;
export type GaugeName = NamesOf<"gauge">;
export type HistogramName = NamesOf<"histogram">;

export type LabelsOf<Name extends MetricName> = (typeof METRICS)[Name] extends {
  labels: readonly (infer Label extends string)[];
}
  ? Readonly<Record<Label, string>>
  : undefined;
