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
  labels: readonly string[];
  /** The upper bounds of a histogram's buckets. */
  buckets?: readonly number[];
}

const row =
  <Kind extends MetricRow["kind"]>(kind: Kind) =>
  <Label extends string>(help: string, ...labels: Label[]) => ({ kind, help, labels });
const counter = row("counter");
const gauge = row("gauge");
/** `buckets`: in the unit of the name. */
const histogram = <Label extends string>(help: string, buckets: readonly number[], ...labels: Label[]) => ({
  kind: "histogram" as const,
  help,
  buckets,
  labels,
});

/** All metrics; each name begins with `threadloom_`. "Of all" figures come from the database. */
export const METRICS = {
  build_info: gauge("Always 1; the labels say what runs.", "version", "langgraph", "node", "role"),
  start_time_seconds: gauge("When the server started, in seconds since 1970."),
  uptime_seconds: gauge("Time since the process started."),
  cpu_seconds_total: counter("CPU time of the process."),
  resident_memory_bytes: gauge("Resident memory."),
  heap_used_bytes: gauge("Used JavaScript heap."),
  external_memory_bytes: gauge("Memory of buffers."),
  event_loop_delay_seconds: gauge(
    "By how much timers are late, since the scrape before the last.",
    "quantile",
  ),

  database_up: gauge("Whether the database answers."),
  database_connections_max: gauge("Connections that the pool may open."),
  database_connections: gauge("Open connections of the pool."),
  database_idle_connections: gauge("Idle connections."),
  database_waiting: gauge("Statements that wait for a connection."),
  table_bytes: gauge("Size of a table with its indexes, of all processes; read once a minute.", "table"),

  runs: gauge("Runs that have not ended, of all processes.", "status"),
  runs_unhosted: gauge("Runs that wait for a graph that no living worker hosts."),
  runs_ended_total: counter("Runs that this process ended, since its start.", "graph", "status"),
  run_queue_seconds: histogram(
    "From the time when a run was due to the start of its first attempt.",
    QUEUE,
    "graph",
  ),
  run_seconds: histogram("Duration of the last attempt of a run.", RUN, "graph"),
  run_first_event_seconds: histogram(
    "From the time when a run was due to its first event after metadata, if it had a reader by then.",
    RUN,
    "graph",
  ),
  attempts_lost_total: counter("Attempts that ended with their process, by the process.", "process"),
  worker_slots: gauge("Runs that this process may execute at once."),
  worker_slots_active: gauge("Runs that this process executes."),
  graph_processes: gauge("Processes that execute graphs.", "state"),
  graph_process_deaths_total: counter("Processes of graphs that ended unasked.", "reason"),

  model_call_seconds: histogram("Duration of a graph's call of a model.", CALL, "model"),
  model_call_errors_total: counter("Calls of models that failed.", "model"),
  model_tokens_total: counter("Tokens that models received and returned.", "model", "direction"),
  tool_call_seconds: histogram("Duration of a graph's call of a tool.", CALL, "tool"),
  tool_call_errors_total: counter("Calls of tools that failed.", "tool"),

  checkpoint_write_seconds: histogram("Duration of the statements that store checkpoints.", STATEMENT),
  event_log_append_seconds: histogram("Duration of the statements that append to the event log.", STATEMENT),
  event_log_events_total: counter("Events that were appended to the event log."),

  http_requests_total: counter(
    "Answered requests. The status is aborted if the client left before the answer.",
    "method",
    "route",
    "status",
  ),
  http_request_seconds: histogram(
    "Duration of requests, except streams and those that wait for a run.",
    REQUEST,
    "method",
    "route",
  ),
  event_streams: gauge("Streams of threads that clients read here, over server-sent events and WebSockets."),
  websockets: gauge("WebSockets that clients hold open here."),
  open_streams: gauge("Streams, WebSockets and waiting requests that callers have open here."),
  refused_total: counter(
    "Requests that were refused since the start, by the limit that was reached.",
    "limit",
  ),

  threads_expired: gauge(
    "Threads whose time is over and that are not removed yet, of all processes; 10000 are counted at most.",
  ),
  threads_expired_late_seconds: gauge("For how long the time of the first of those threads has been over."),
  crons_scheduled: gauge("Crons that will be fired, of all processes."),
  crons_due: gauge("Crons that are due and not fired yet, of all processes."),
  crons_late_seconds: gauge("For how long the first cron is due that is not fired yet, of all processes."),
  webhooks: gauge("Deliveries of webhooks that are not made, of all processes.", "state"),
  webhooks_oldest_seconds: gauge(
    "For how long the first run has ended whose webhook is not delivered, of all processes.",
  ),
  webhook_tries_total: counter("Tries to deliver webhooks since the start, by result.", "result"),
  pushes_pending: gauge("Push notifications of A2A that are not delivered, of all processes."),
  push_tries_total: counter("Tries to deliver push notifications since the start, by result.", "result"),
} satisfies Readonly<Record<string, MetricRow>>;

type MetricName = keyof typeof METRICS;

type NamesOf<Kind extends MetricRow["kind"]> = {
  [Name in MetricName]: (typeof METRICS)[Name]["kind"] extends Kind ? Name : never;
}[MetricName];
export type CounterName = NamesOf<"counter">;
export type GaugeName = NamesOf<"gauge">;
export type HistogramName = NamesOf<"histogram">;

export type LabelsOf<Name extends MetricName> = Readonly<
  Record<(typeof METRICS)[Name]["labels"][number], string>
>;
