import { freshDatabase } from "../helpers/database.ts";
import { spawnServer } from "../helpers/server-process.ts";
import { CLIENT_GRAPHS } from "./graphs/graphs.ts";

export interface AcceptanceServer {
  url: string;
  close(): Promise<void>;
}

/** A server in a process of its own, with a database of its own and the graphs of the clients. */
export const startServerProcess = async (): Promise<AcceptanceServer> => {
  const database = await freshDatabase();
  const server = spawnServer(["--config", CLIENT_GRAPHS, "--port", "0"], {
    DATABASE_URL: database.connectionString,
    LOG_LEVEL: "info",
  });
  return {
    url: await server.address(),
    async close() {
      await server.kill();
      await database.drop();
    },
  };
};
