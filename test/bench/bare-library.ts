import { MemorySaver, type BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import { randomUUID } from "node:crypto";
import pg from "pg";
import { boundCopy, type RunnableGraph } from "../../src/graphs/runnable-graph.ts";
import type { CpuSample } from "./cpu.ts";
import { clusterCpuMs, ownCpuMs } from "./cpu.ts";

/** The same graphs without a server, in this process: the cost of LangGraph.js alone. */
export interface BareLibrary {
  readonly name: "none" | "memory" | "official";
  graph(id: GraphId): RunnableGraph;
  newThread(): { configurable: { thread_id: string } };
  cpu(): Promise<CpuSample>;
}

export type GraphId = "two-step" | "ten-steps" | "sleep" | "custom-events" | "tokens" | "timed" | "chat";

const loadGraphs = async (): Promise<Record<GraphId, RunnableGraph>> => {
  const graphOf = (module: { graph: unknown }) => module.graph as RunnableGraph;
  return {
    "two-step": graphOf(await import("../fixtures/two-step.ts")),
    "ten-steps": graphOf(await import("../fixtures/ten-steps.ts")),
    sleep: graphOf(await import("../fixtures/sleep.ts")),
    "custom-events": graphOf(await import("../fixtures/custom-events.ts")),
    tokens: graphOf(await import("../fixtures/tokens.ts")),
    timed: graphOf(await import("./graphs/timed.ts")),
    chat: graphOf(await import("./graphs/chat.ts")),
  };
};

export interface BareLibraries {
  /** Without a saver: state lives as long as the run. */
  readonly none: BareLibrary;
  /** With LangGraph's in-memory saver; a new one each time, because it never releases its data. */
  memory(): BareLibrary;
  /** With the official Postgres saver, on the PostgreSQL of the server under test, in a database of its own. */
  readonly official: BareLibrary;
  close(): Promise<void>;
}

/** The database of the official saver, beside the server's own on the same PostgreSQL. */
export const OFFICIAL_DATABASE = "official_saver";
/** The default pool size of the server. */
export const POOL_SIZE = 20;

export const createBareLibraries = async (
  connectionString: string,
  postmasterPid: () => Promise<number>,
): Promise<BareLibraries> => {
  const graphs = await loadGraphs();
  const pool = new pg.Pool({ connectionString, max: POOL_SIZE });
  pool.on("error", () => undefined); // at the end the database may be closed first
  const official = new PostgresSaver(pool);
  await official.setup();

  const library = (
    name: BareLibrary["name"],
    checkpointer: BaseCheckpointSaver | undefined,
  ): BareLibrary => ({
    name,
    graph: (id) => boundCopy(graphs[id], checkpointer === undefined ? {} : { checkpointer }),
    newThread: () => ({ configurable: { thread_id: randomUUID() } }),
    cpu: async () => ({ server: ownCpuMs(), database: await clusterCpuMs(await postmasterPid()) }),
  });

  return {
    none: library("none", undefined),
    memory: () => library("memory", new MemorySaver()),
    official: library("official", official),
    close: () => pool.end(),
  };
};
