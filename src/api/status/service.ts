import { monitorEventLoopDelay } from "node:perf_hooks";
import { cpuUsage, memoryUsage, uptime } from "node:process";
import type { Database } from "../../platform/database/database.ts";
import { isOutOfRoom } from "../../platform/database/passing-faults.ts";
import { forbidden, unavailable } from "../../platform/domain/errors.ts";
import { packageVersion, serverVersion } from "../../platform/lib/package-versions.ts";
import { within } from "../../platform/lib/within.ts";
import { createMetrics, type ServerMetrics } from "../../platform/metrics/metrics.ts";
import { toPrometheus } from "./prometheus.ts";
import type { QueueRepository, StatusRepository } from "./repository.ts";
import type { Metrics, QueueRecord, ServerInfo } from "./schemas.ts";
import type { Caller } from "../../access/caller.ts";
import { timestamp } from "../../platform/lib/timestamps.ts";

interface LoopDelay {
  p50: number;
  p99: number;
  max: number;
}

const SAMPLE_MS = 10;
const PERIOD_MS = 10_000;
const NANOSECONDS = 1e9;

/** By how much timers of this process are late, in seconds. */
export const watchLoopDelay = (periodMs = PERIOD_MS) => {
  const histogram = monitorEventLoopDelay({ resolution: SAMPLE_MS });
  histogram.enable();
  /** The histogram records the whole time between two samples, including the interval. */
  const seconds = (nanoseconds: number): number =>
    Math.max(0, nanoseconds / NANOSECONDS - SAMPLE_MS / 1_000) || 0;
  let former: LoopDelay = { p50: 0, p99: 0, max: 0 };
  let begunAt = performance.now();

  return {
    /**
     * The worse of this period and the last; a period lasts ten seconds or until the next read. A blocked loop answers a
     * scrape too late, so the next scrape must still show the block.
     */
    read(): LoopDelay {
      const current = {
        p50: seconds(histogram.percentile(50)),
        p99: seconds(histogram.percentile(99)),
        max: seconds(histogram.max),
      };
      const worse = {
        p50: Math.max(former.p50, current.p50),
        p99: Math.max(former.p99, current.p99),
        max: Math.max(former.max, current.max),
      };
      if (performance.now() - begunAt < periodMs) return worse;
      former = current;
      begunAt = performance.now();
      histogram.reset();
      return worse;
    },
    close: (): void => void histogram.disable(),
  };
};

export interface StatusServiceOptions {
  database: Database;
  repository: StatusRepository;
  /** Why this process should get no requests, as the end of a sentence. */
  readiness?: () => string | undefined;
  workers?: () => { max: number; active: number };
  eventStreaming?: () => Metrics["event_streaming"];
  deliveryTries?: () => Record<"webhook" | "push", Metrics["webhook_tries"]> | undefined;
  limits?: () => Metrics["limits"];
  graphProcesses?: () => Metrics["graph_processes"];
  listUnhosted?: () => Promise<{ graph_id: string; runs: number }[]>;
  /** What the server counts while it works. Default: nothing is counted. */
  counted?: ServerMetrics;
  role?: string;
  flags?: Record<string, boolean>;
}

/** Studio refuses a lower version. Clients split the version at its dots. */
const API_VERSION = "0.4.35";

const NO_ROOM = "The database has no room left on its disk.";

/** A probe must end before a pool gives up waiting for a connection. */
const DATABASE_CHECK_MS = 2_000;

/** Anyone can call /ok, and the check costs the database 10 ms. */
const ROOM_LASTS_MS = 5_000;

/** Tables grow slowly, and a large one has thousands of files. */
const SIZES_LAST_MS = 60_000;

/** The names of the hosted service and the SDKs. */
const FLAGS = {
  assistants: true,
  crons: true,
  langsmith: false,
  langsmith_tracing_replicas: false,
  strict_resume: true,
  stream_namespaces: true,
};

const MICROSECONDS = 1e6;

/**
 * Callers share the work in progress. Otherwise each probe would hold a connection while the database does not answer.
 */
const oneAtATime = <T>(work: () => Promise<T>): (() => Promise<T>) => {
  let underWay: Promise<T> | undefined;
  return () =>
    (underWay ??= work().finally(() => {
      underWay = undefined;
    }));
};

export const createStatusService = (options: StatusServiceOptions) => {
  const { database, repository, readiness, workers, counted = createMetrics(), role = "all" } = options;
  const loopDelay = watchLoopDelay();
  const isWritable = oneAtATime(() => repository.isWritable());
  let roomSeenAt = -Infinity;
  const hasRoom = oneAtATime(async () => {
    if (performance.now() - roomSeenAt < ROOM_LASTS_MS) return true;
    const found = await repository.hasRoom();
    if (found) roomSeenAt = performance.now();
    return found;
  });
  const countAll = oneAtATime(async () => {
    const unhosted = (await options.listUnhosted?.()) ?? [];
    const num_unhosted = unhosted.reduce((sum, { runs }) => sum + runs, 0);
    const queue = { ...(await repository.countUnfinishedRuns()), num_unhosted };
    const crons = await repository.countCrons();
    const { pushes, ...webhooks } = await repository.countDeliveries();
    const threads = await repository.countExpired();
    return { threads, queue, webhooks, pushes: { num_pending: pushes }, crons };
  });
  let sizes: { bytes: Record<string, number>; at: number } | undefined;
  /** Apart from the counts: a migration may lock a table that they do not read. */
  const tableBytes = oneAtATime(async () => {
    if (sizes === undefined || performance.now() - sizes.at > SIZES_LAST_MS)
      sizes = { bytes: await repository.tableBytes(), at: performance.now() };
    return sizes.bytes;
  });
  const info: ServerInfo = {
    version: API_VERSION,
    threadloom_version: serverVersion(),
    langgraph_js_version: packageVersion("@langchain/langgraph"),
    langgraph_py_version: "",
    context: "js",
    flags: { ...FLAGS, ...options.flags },
    host: { kind: "self-hosted", project_id: null, revision_id: null, tenant_id: null },
    metadata: {},
  };

  const metrics = async (): Promise<Metrics> => {
    const read = <T>(work: () => Promise<T>): Promise<T | undefined> =>
      within(DATABASE_CHECK_MS, work()).catch(() => undefined);
    const [counts, tables] = await Promise.all([read(countAll), read(tableBytes)]);
    const memory = memoryUsage();
    const cpu = cpuUsage();
    const delay = loopDelay.read();
    const { pool } = database;
    const worker = workers?.();
    return {
      process: {
        uptime_seconds: uptime(),
        cpu_seconds: (cpu.user + cpu.system) / MICROSECONDS,
        resident_memory_bytes: memory.rss,
        heap_used_bytes: memory.heapUsed,
        external_memory_bytes: memory.external,
        event_loop_delay_p50_seconds: delay.p50,
        event_loop_delay_p99_seconds: delay.p99,
        event_loop_delay_max_seconds: delay.max,
      },
      database: {
        up: counts !== undefined,
        connections_max: pool.options.max,
        connections: pool.totalCount,
        idle_connections: pool.idleCount,
        waiting: pool.waitingCount,
      },
      tables: counts && tables,
      ...counts,
      webhook_tries: options.deliveryTries?.()?.webhook,
      push_tries: options.deliveryTries?.()?.push,
      event_streaming: options.eventStreaming?.(),
      limits: options.limits?.(),
      workers: worker === undefined ? undefined : { ...worker, available: worker.max - worker.active },
      graph_processes: options.graphProcesses?.(),
    };
  };

  return {
    info: (): ServerInfo => info,

    /**
     * Throws `unavailable` if this process should get no requests, or the checked database does not answer, takes no
     * writes or has no room.
     */
    async assertHealthy({ checkDatabase }: { checkDatabase: boolean }): Promise<void> {
      const reason = readiness?.();
      if (reason !== undefined) throw unavailable(`This server ${reason}.`);
      if (!checkDatabase) return;
      let takesWrites: boolean;
      let room = true;
      try {
        takesWrites = await within(DATABASE_CHECK_MS, isWritable());
        if (takesWrites) room = await within(DATABASE_CHECK_MS, hasRoom());
      } catch (error) {
        // Without room, a connection may fail at its start.
        if (isOutOfRoom(error)) throw unavailable(NO_ROOM, error);
        throw unavailable("The database does not answer.", error);
      }
      // Every process writes: runs, leases, the ends of runs.
      if (!takesWrites) throw unavailable("The database takes no writes.");
      if (!room) throw unavailable(NO_ROOM);
    },

    /** For the exit report; undefined if the database does not answer. */
    async pendingRuns(): Promise<number | undefined> {
      const counted = repository.countUnfinishedRuns({ answerMs: DATABASE_CHECK_MS });
      return (await within(DATABASE_CHECK_MS, counted).catch(() => undefined))?.num_pending;
    },

    metrics,

    /** The text for Prometheus. */
    async prometheus(): Promise<string> {
      return await toPrometheus(await metrics(), { counted, info, role });
    },

    close: loopDelay.close,
  };
};

export type StatusService = ReturnType<typeof createStatusService>;

interface QueueServiceParts {
  repository: QueueRepository;
  /** Undefined if this server executes no runs. */
  slots(): { server_id: string; max: number; active: number } | undefined;
}

export const createQueueService = ({ repository, slots }: QueueServiceParts) => ({
  async read(caller: Caller, signal?: AbortSignal): Promise<QueueRecord> {
    if (caller.kind === "user")
      throw forbidden("The queue of this server shows what everybody has: it needs an API key.");
    const waiting = await repository.waiting(signal);
    const servers = await repository.servers(signal);
    return {
      ...waiting,
      servers: servers.map(({ seen_at, ...server }) => ({
        ...server,
        seen_at: seen_at && timestamp(seen_at),
      })),
      slots: slots() ?? null,
    };
  },
});

export type QueueService = ReturnType<typeof createQueueService>;
