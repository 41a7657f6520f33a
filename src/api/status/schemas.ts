import { z } from "zod";
import { queryBoolean } from "../../platform/domain/json-schemas.ts";

export const healthQuery = z.object({
  check_db: queryBoolean.describe("Also check that the database takes writes and has room for them."),
});
export const health = z.object({ ok: z.literal(true) });

/** `prometheus` is the default, as in the hosted service. */
export const metricsQuery = z.object({
  format: z.preprocess(
    (value) => (value === "" ? undefined : value),
    z.enum(["prometheus", "json"]).optional(),
  ),
});

export const serverInfo = z
  .object({
    version: z.string().describe("The version of the API; Studio needs at least 0.4.35."),
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

export interface Metrics {
  process: {
    uptime_seconds: number;
    cpu_seconds: number;
    resident_memory_bytes: number;
    heap_used_bytes: number;
    external_memory_bytes: number;
    /** See `watchLoopDelay`. */
    event_loop_delay_p50_seconds: number;
    event_loop_delay_p99_seconds: number;
    event_loop_delay_max_seconds: number;
  };
  database: {
    up: boolean;
    connections_max: number;
    connections: number;
    idle_connections: number;
    waiting: number;
    /** Whether this process can use each node of a distributed database. */
    nodes_up: Readonly<Record<string, boolean>>;
  };
  /** Of all processes; undefined while the database is away. */
  queue:
    | {
        num_pending: number;
        num_running: number;
        /** No living worker hosts their graph. */
        num_unhosted: number;
        /** They may have ended their processes. */
        num_suspects: number;
      }
    | undefined;
  /** Bytes by table, with indexes, of all processes; undefined while the database is away. Read once a minute. */
  tables: Readonly<Record<string, number>> | undefined;
  /** As `queue`; see `ExpiredCounts`. */
  threads: { num_expired: number; late_seconds: number } | undefined;
  /** As `queue`; see `CronCounts`. */
  crons: { num_scheduled: number; num_due: number; late_seconds: number } | undefined;
  /** As `queue`; see `WebhookCounts`. */
  webhooks: { num_pending: number; num_failed: number; oldest_seconds: number } | undefined;
  /** Push notifications of A2A; as `queue`. */
  pushes: { num_pending: number } | undefined;
  /** By result; undefined if this process sends none. */
  webhook_tries: Readonly<Record<string, number>> | undefined;
  push_tries: Readonly<Record<string, number>> | undefined;
  /** A WebSocket has one stream for each subscription. */
  event_streaming: { streams: number; sockets: number } | undefined;
  /** Of this process; refusals by limit. */
  limits: { open_streams: number; refused: Readonly<Record<string, number>> } | undefined;
  /** Undefined if this process is no worker. */
  workers: { max: number; active: number; available: number } | undefined;
  /** Deaths by reason; undefined without WORKERS. */
  graph_processes:
    | { working: number; spare: number; starting: number; deaths: Readonly<Record<string, number>> }
    | undefined;
}
