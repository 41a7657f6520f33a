import { createReadRoom } from "../../../src/http/large-answers.ts";
import { createRunEnds } from "../../../src/engine/queue/ending.ts";
import { fileURLToPath } from "node:url";
import type { FastifyInstance } from "fastify";
import { pino } from "pino";
import { createCheckpointStorage } from "../../../src/state/checkpoints/storage.ts";
import type { CheckpointStorage } from "../../../src/state/checkpoints/types.ts";
import type { Database } from "../../../src/platform/database/database.ts";
import { openDatabase } from "../../../src/platform/database/database.ts";
import { loadGraphs, type Graphs } from "../../../src/graphs/graphs.ts";
import type { RunnableGraph } from "../../../src/graphs/runnable-graph.ts";
import { ANONYMOUS } from "../../../src/access/caller.ts";
import { createApp } from "../../../src/http/app.ts";
import { allowedOrigins } from "../../../src/http/sites.ts";
import { createThreadRoutes } from "../../../src/api/threads/routes.ts";
import { createThreadService, type ThreadService } from "../../../src/api/threads/service.ts";
import { authorize } from "../../helpers/access.ts";
import { freshDatabase } from "../../helpers/database.ts";
import { CONNECTION_LIMITS } from "../../helpers/parts.ts";

const GRAPHS = fileURLToPath(new URL("./graphs/langgraph.json", import.meta.url));

export interface Answer<Body = unknown> {
  status: number;
  body: Body;
  headers: Record<string, string | number | string[] | undefined>;
}

export interface Thread {
  thread_id: string;
  created_at: string;
  updated_at: string;
  state_updated_at: string;
  metadata: Record<string, unknown>;
  config: Record<string, unknown>;
  status: string;
  values: Record<string, unknown> | null;
  interrupts: Record<string, unknown[]>;
  ttl?: { strategy: string; ttl_minutes: number; expires_at: string };
  extracted?: Record<string, unknown>;
}

export interface Task {
  id: string;
  name: string;
  error: string | null;
  interrupts: { id: string; value: unknown }[];
  path: unknown[];
  checkpoint: Record<string, unknown> | null;
  state: State | null;
  result: unknown;
}

export interface State {
  values: Record<string, unknown>;
  next: string[];
  tasks: Task[];
  metadata: Record<string, unknown>;
  created_at: string | null;
  checkpoint: {
    thread_id: string;
    checkpoint_ns: string;
    checkpoint_id: string;
    checkpoint_map: unknown;
  } | null;
  parent_checkpoint: { checkpoint_id: string } | null;
  interrupts: unknown[];
}

/**
 * Only the threads room, over HTTP and with real parts: its routes, a fresh database, the graphs of test/fixtures and some unusual ones.
 */
export interface ThreadsRoom {
  app: FastifyInstance;
  service: ThreadService;
  database: Database;
  checkpoints: CheckpointStorage;
  graphs: Graphs;
  /** Ids of deleted threads, in the order of their announcements. */
  deleted: string[];
  request<Body = unknown>(
    method: "GET" | "POST" | "PATCH" | "DELETE",
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Answer<Body>>;
  aThread(fields?: Record<string, unknown>): Promise<Thread>;
  graph(graphId: string): Promise<RunnableGraph>;
  /** Executes a graph on a thread like a run, without the engine; afterwards the thread knows its graph. */
  run(graphId: string, threadId: string, input: unknown): Promise<void>;
  close(): Promise<void>;
}

export const openThreadsRoom = async (): Promise<ThreadsRoom> => {
  const fresh = await freshDatabase();
  const logger = pino({ level: "silent" });
  const database = openDatabase({
    connectionString: fresh.connectionString,
    poolSize: 5,
    applicationName: "threads test",
    preparedStatements: true,
    logger,
  });
  const checkpoints = createCheckpointStorage({ database, logger });
  const graphs = await loadGraphs({ configPath: GRAPHS, logger, checkpointer: checkpoints.saver });
  const deleted: string[] = [];
  const service = createThreadService({
    database,
    authorize,
    checkpoints,
    ends: createRunEnds(database, checkpoints),
    graphs,
    logger,
    onThreadsDeleted: (threadIds) => deleted.push(...threadIds),
  });
  const app = await createApp({
    readRoom: createReadRoom(),
    logger,
    authenticate: () => ANONYMOUS,
    connectionLimits: CONNECTION_LIMITS,
    bodyLimits: { bytes: 10_000_000, elements: 250_000 },
    cors: { origins: allowedOrigins(["*"]) },
    routes: [createThreadRoutes(service)],
  });

  const request: ThreadsRoom["request"] = async (method, path, body, headers = {}) => {
    const answer = await app.inject({
      method,
      url: path,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
    });
    return {
      status: answer.statusCode,
      body: (answer.payload === "" ? undefined : JSON.parse(answer.payload)) as never,
      headers: answer.headers,
    };
  };

  return {
    app,
    service,
    database,
    checkpoints,
    graphs,
    deleted,
    request,
    aThread: async (fields = {}) => (await request<Thread>("POST", "/threads", fields)).body,
    graph: (graphId) => graphs.resolve(graphId, {}, { checkpointer: checkpoints.saver }),
    async run(graphId, threadId, input) {
      const graph = await graphs.resolve(graphId, {}, { checkpointer: checkpoints.saver });
      await database.query(
        "update threadloom.threads set updated_at = now(), metadata = metadata || jsonb_build_object('graph_id', $2::text) where thread_id = $1",
        [threadId, graphId],
      );
      await graph.invoke(input, { configurable: { thread_id: threadId } });
    },
    async close() {
      await app.close();
      await graphs.close();
      await database.close();
      await fresh.drop();
    },
  };
};
