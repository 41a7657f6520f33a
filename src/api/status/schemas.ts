import { z } from "zod";
import { queryBoolean, uuid } from "../../platform/domain/json-schemas.ts";

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
  };
  /** Of all processes; undefined while the database is away. */
  queue?: {
    num_pending: number;
    num_running: number;
    /** No living worker hosts their graph. */
    num_unhosted: number;
  };
  /** Bytes by table, with indexes, of all processes; undefined while the database is away. Read once a minute. */
  tables: Readonly<Record<string, number>> | undefined;
  /** As `queue`, at most 10,000; `late_seconds`: since the first of them expired. */
  threads?: { num_expired: number; late_seconds: number };
  /** As `queue`; `late_seconds`: since the first unfired cron was due. */
  crons?: { num_scheduled: number; num_due: number; late_seconds: number };
  /** As `queue`; `oldest_seconds`: since the first run with an undelivered webhook ended. */
  webhooks?: { num_pending: number; num_failed: number; oldest_seconds: number };
  /** Push notifications of A2A; as `queue`. */
  pushes?: { num_pending: number };
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

const count = z.int().nonnegative();
const oldestSeconds = z
  .number()
  .nullable()
  .describe("Age in seconds of the oldest pending run that could start; null if there is none.");

export const queueRecord = z
  .object({
    num_pending: count,
    num_scheduled: count.describe("Pending runs with a later start."),
    num_running: count,
    oldest_seconds: oldestSeconds,
    is_complete: z
      .boolean()
      .describe("False: more than 50,000 runs are pending, and the figures cover only 50,000 of them."),
    graphs: z
      .array(
        z.object({
          graph_id: z.string(),
          num_pending: count,
          num_running: count,
          oldest_seconds: oldestSeconds,
          is_hosted: z.boolean().describe("False: no living server executes runs of this graph."),
        }),
      )
      .describe("Graphs with unfinished runs, those with the most first; at most 100."),
    threads: z
      .array(
        z.object({
          thread_id: uuid,
          graph_id: z.string(),
          num_pending: count,
          oldest_seconds: oldestSeconds,
        }),
      )
      .describe("Threads with pending runs, those with the most first; at most 50."),
    servers: z
      .array(
        z.object({
          server_id: uuid,
          num_running: count,
          seen_at: z
            .string()
            .nullable()
            .describe("The server's last heartbeat; null after an hour without one."),
          graph_ids: z.array(z.string()),
        }),
      )
      .describe("Living servers, and dead ones that still hold runs; at most 100."),
    slots: z
      .object({ server_id: uuid, max: count, active: count })
      .nullable()
      .describe("The slots of the server that answers; null if it executes no runs."),
  })
  .meta({ id: "Queue" });
export type QueueRecord = z.output<typeof queueRecord>;
