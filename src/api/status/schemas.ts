import { z } from "zod";
import { queryBoolean } from "../../platform/domain/json-schemas.ts";

export const healthQuery = z.object({
  check_db: queryBoolean.describe("Also ask the database, which must take writes and have room for them."),
});
export const health = z.object({ ok: z.literal(true) });

/** `prometheus` is the default, as at the hosted service. */
export const metricsQuery = z.object({
  format: z.preprocess(
    (value) => (value === "" ? undefined : value),
    z.enum(["prometheus", "json"]).optional(),
  ),
});

export const serverInfo = z
  .object({
    version: z
      .string()
      .describe("Version of the API that this server speaks; Studio asks for 0.4.35 at least."),
    threadloom_version: z.string(),
    langgraph_js_version: z.string(),
    langgraph_py_version: z.string().describe("Empty: the graphs are LangGraph.js graphs."),
    context: z.literal("js"),
    flags: z.record(z.string(), z.boolean()),
    host: z.object({
      kind: z.string(),
      project_id: z.string().nullable(),
      revision_id: z.string().nullable(),
      tenant_id: z.string().nullable(),
    }),
    metadata: z.record(z.string(), z.string()),
  })
  .meta({ id: "ServerInfo" });

export type ServerInfo = z.output<typeof serverInfo>;

/** Bytes, seconds and counts, as the names say. */
export interface Metrics {
  process: {
    uptime_seconds: number;
    cpu_seconds: number;
    resident_memory_bytes: number;
    heap_used_bytes: number;
    external_memory_bytes: number;
    /** By how much a timer is late, since the last look. */
    event_loop_delay_p50_seconds: number;
    event_loop_delay_p99_seconds: number;
    event_loop_delay_max_seconds: number;
  };
  database: {
    up: boolean;
    connections: number;
    idle_connections: number;
    /** Statements that wait for a connection. */
    waiting: number;
  };
  /** Runs that have not ended, of all processes; undefined while the database is away. */
  queue:
    | {
        num_pending: number;
        num_running: number;
        /** Of those pending: runs whose graph no living worker hosts. */
        num_unhosted: number;
        /** Of those pending: runs that may have ended their processes, and wait to be executed alone. */
        num_suspects: number;
      }
    | undefined;
  /**
   * Of all processes; undefined while the database is away. Threads whose time is over and that are not removed yet: 10,000 are
   * counted at most. `late_seconds`: since the time of the first of them was over.
   */
  threads: { num_expired: number; late_seconds: number } | undefined;
  /** Of all processes; undefined while the database is away. `late_seconds`: since the first one is due that is not fired. */
  crons: { num_scheduled: number; num_due: number; late_seconds: number } | undefined;
  /** Of all processes; undefined while the database is away. `oldest_seconds`: since the first run ended of which nobody was told. */
  webhooks: { num_pending: number; num_failed: number; oldest_seconds: number } | undefined;
  /** Of this process since it started, by what they came to; undefined where it sends none. */
  webhook_tries: Readonly<Record<string, number>> | undefined;
  /** What clients read of threads from this process over event streaming; a WebSocket has a stream for each subscription. */
  event_streaming: { streams: number; sockets: number } | undefined;
  /** Streams and waiting requests that callers have open here, and what was refused since the start, by the limit. */
  limits: { open_streams: number; refused: Readonly<Record<string, number>> } | undefined;
  /** What this process executes; undefined if it is no worker. */
  workers: { max: number; active: number; available: number } | undefined;
  /** Processes that execute graphs for this one, and those that ended unasked, by the reason; undefined without WORKERS. */
  graph_processes:
    | { working: number; spare: number; starting: number; deaths: Readonly<Record<string, number>> }
    | undefined;
}
