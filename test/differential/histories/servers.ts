import { fileURLToPath } from "node:url";
import { pino } from "pino";
import { parseConfig } from "../../../src/platform/config/config.ts";
import { createServer } from "../../../src/server/app/compose.ts";
import { createSend, type Send } from "./server-side.ts";

export interface TwoServers {
  send: Send;
  close(): Promise<void>;
}

const SETTINGS = {
  LANGGRAPH_CONFIG: fileURLToPath(new URL("langgraph.json", import.meta.url)),
  PORT: "0",
  SOURCE_SCHEMAS: "false",
  LOG_LEVEL: "error",
  RATE_LIMIT_REQUESTS: "0",
  RATE_LIMIT_RUNS: "0",
};

/** Two whole servers on one database, in this process. */
export const startTwoServers = async (
  connectionString: string,
  log: NodeJS.WritableStream,
): Promise<TwoServers> => {
  const servers: Awaited<ReturnType<typeof createServer>>[] = [];
  const close = async (): Promise<void> => {
    for (const server of servers) await server.close();
  };
  try {
    const urls: string[] = [];
    for (const _ of [0, 1]) {
      const config = parseConfig({}, { ...SETTINGS, DATABASE_URL: connectionString });
      const server = await createServer(config, { connectionString, logger: pino({ level: "error" }, log) });
      servers.push(server);
      urls.push((await server.listen()).address);
    }
    const client = createSend(urls);
    return {
      send: client.send,
      async close() {
        client.close();
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
};
