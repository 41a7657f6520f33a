import type { Metrics } from "./schemas.ts";

export const toPrometheus = (metrics: Metrics): string => {
  const {
    process,
    database,
    queue,
    threads,
    crons,
    webhooks,
    event_streaming,
    limits,
    workers,
    graph_processes,
  } = metrics;
  const lines: string[] = [];
  const write = (name: string, kind: "gauge" | "counter", help: string, value: number, labels = ""): void => {
    const full = `threadloom_${name}`;
    if (!lines.includes(`# TYPE ${full} ${kind}`))
      lines.push(`# HELP ${full} ${help}`, `# TYPE ${full} ${kind}`);
    lines.push(`${full}${labels} ${value}`);
  };
  const delay = "By how much timers are late, since the last scrape.";
  write("uptime_seconds", "gauge", "Time since the process started.", process.uptime_seconds);
  write("cpu_seconds_total", "counter", "CPU time of the process.", process.cpu_seconds);
  write("resident_memory_bytes", "gauge", "Resident memory.", process.resident_memory_bytes);
  write("heap_used_bytes", "gauge", "Used JavaScript heap.", process.heap_used_bytes);
  write("external_memory_bytes", "gauge", "Memory of buffers.", process.external_memory_bytes);
  write("event_loop_delay_seconds", "gauge", delay, process.event_loop_delay_p50_seconds, '{quantile="0.5"}');
  write(
    "event_loop_delay_seconds",
    "gauge",
    delay,
    process.event_loop_delay_p99_seconds,
    '{quantile="0.99"}',
  );
  write("event_loop_delay_seconds", "gauge", delay, process.event_loop_delay_max_seconds, '{quantile="1"}');
  write("database_up", "gauge", "Whether the database answers.", database.up ? 1 : 0);
  write("database_connections", "gauge", "Open connections of the pool.", database.connections);
  write("database_idle_connections", "gauge", "Idle connections.", database.idle_connections);
  write("database_waiting", "gauge", "Statements that wait for a connection.", database.waiting);
  if (queue !== undefined) {
    const help = "Runs that have not ended, of all processes.";
    write("runs", "gauge", help, queue.num_pending, '{status="pending"}');
    write("runs", "gauge", help, queue.num_running, '{status="running"}');
    const unhosted = "Runs that wait for a graph that no living worker hosts.";
    write("runs_unhosted", "gauge", unhosted, queue.num_unhosted);
    const suspects = "Runs that may have ended their processes, and wait to be executed alone.";
    write("runs_suspect", "gauge", suspects, queue.num_suspects);
  }
  if (threads !== undefined) {
    const expired =
      "Threads whose time is over and that are not removed yet, of all processes; 10000 are counted at most.";
    const late = "For how long the time of the first of those threads has been over.";
    write("threads_expired", "gauge", expired, threads.num_expired);
    write("threads_expired_late_seconds", "gauge", late, threads.late_seconds);
  }
  if (crons !== undefined) {
    const late = "For how long the first cron is due that is not fired yet, of all processes.";
    write("crons_scheduled", "gauge", "Crons that will be fired, of all processes.", crons.num_scheduled);
    write("crons_due", "gauge", "Crons that are due and not fired yet, of all processes.", crons.num_due);
    write("crons_late_seconds", "gauge", late, crons.late_seconds);
  }
  if (webhooks !== undefined) {
    const help = "Deliveries of webhooks that are not made, of all processes.";
    const oldest = "For how long the first run has ended whose webhook is not delivered, of all processes.";
    write("webhooks", "gauge", help, webhooks.num_pending, '{state="pending"}');
    write("webhooks", "gauge", help, webhooks.num_failed, '{state="failed"}');
    write("webhooks_oldest_seconds", "gauge", oldest, webhooks.oldest_seconds);
  }
  const tries = "Tries to deliver webhooks since the start, by result.";
  for (const [result, value] of Object.entries(metrics.webhook_tries ?? {}))
    write("webhook_tries_total", "counter", tries, value, `{result="${result}"}`);
  if (event_streaming !== undefined) {
    const streams = "Streams of threads that clients read here, over server-sent events and WebSockets.";
    write("event_streams", "gauge", streams, event_streaming.streams);
    write("websockets", "gauge", "WebSockets that clients hold open here.", event_streaming.sockets);
  }
  if (limits !== undefined) {
    const open = "Streams, WebSockets and waiting requests that callers have open here.";
    write("open_streams", "gauge", open, limits.open_streams);
    const refused = "Requests that were refused since the start, by the limit that was reached.";
    for (const [limit, value] of Object.entries(limits.refused))
      write("refused_total", "counter", refused, value, `{limit="${limit}"}`);
  }
  if (workers !== undefined) {
    write("worker_slots", "gauge", "Runs that this process may execute at once.", workers.max);
    write("worker_slots_active", "gauge", "Runs that this process executes.", workers.active);
  }
  if (graph_processes !== undefined) {
    const { deaths, ...states } = graph_processes;
    for (const [state, value] of Object.entries(states))
      write("graph_processes", "gauge", "Processes that execute graphs.", value, `{state="${state}"}`);
    const help = "Processes of graphs that ended unasked.";
    for (const [reason, value] of Object.entries(deaths))
      write("graph_process_deaths_total", "counter", help, value, `{reason="${reason}"}`);
  }
  return `${lines.join("\n")}\n`;
};
