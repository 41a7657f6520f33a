import { fileURLToPath } from "node:url";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import type { Pool } from "pg";
import { boundCopy } from "../../../src/graphs/runnable-graph.ts";
import { loadGraphs, type Graphs } from "../../../src/graphs/graphs.ts";
import { createLogger } from "../../../src/platform/lib/logger.ts";
import { freshDatabase } from "../../helpers/database.ts";

const GRAPHS = fileURLToPath(new URL("../../api/threads/graphs/langgraph.json", import.meta.url));
/** The schema of the official saver's tables: `public` contains this server's tables in every test database. */
export const SOURCE_SCHEMA = "official";

/** A database that the official saver fills, and graphs to fill it with. */
export const openSourceDatabase = async () => {
  const fresh = await freshDatabase();
  const saver = PostgresSaver.fromConnString(fresh.connectionString, { schema: SOURCE_SCHEMA });
  // The saver's pool ends before its connections are closed, and the forced drop of the database may come first. Without this listener,
  // seven unhandled errors once failed a run in which every test had passed.
  (saver as unknown as { pool: Pool }).pool.on("error", () => undefined);
  await saver.setup();
  const graphs: Graphs = await loadGraphs({
    configPath: GRAPHS,
    logger: createLogger({ level: "silent" }),
  });
  const graph = async (id: string, checkpointer: BaseCheckpointSaver) =>
    boundCopy(await graphs.resolve(id), { checkpointer });
  return {
    connectionString: fresh.connectionString,
    saver: saver as unknown as BaseCheckpointSaver,
    graph,
    async run(graphId: string, threadId: string, ...inputs: unknown[]): Promise<void> {
      const bound = await graph(graphId, saver as unknown as BaseCheckpointSaver);
      for (const input of inputs) {
        await bound.invoke(input as never, { configurable: { thread_id: threadId } });
      }
    },
    async close(): Promise<void> {
      await graphs.close();
      await saver.end();
      await fresh.drop();
    },
  };
};

export type SourceDatabase = Awaited<ReturnType<typeof openSourceDatabase>>;

export const saying = (text: string) => ({ messages: [{ role: "user", content: text }] });
