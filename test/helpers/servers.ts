import { afterAll, afterEach, beforeAll } from "vitest";
import { apiOf, type Api } from "./api.ts";
import { startTestServer, type TestServer, type TestServerOptions } from "./app.ts";

/** Starts a server for a file of tests. */
export const onServer = (
  options: TestServerOptions,
  use: (opened: { server: TestServer; api: Api }) => void,
): void => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer(options);
    use({ server, api: apiOf(server) });
  });
  afterAll(() => server.close());
};

export interface TwoServers {
  server: TestServer;
  /** Executes nothing, so `server` executes every run. */
  replica: TestServer;
  api: Api;
  /** Of the replica. */
  other: Api;
}

/** Starts two servers on one database for a file of tests. Each test ends with its runs cancelled. */
export const onTwoServers = (use: (servers: TwoServers) => void): void => {
  let servers: TwoServers;
  beforeAll(async () => {
    const server = await startTestServer();
    const replica = await startTestServer({ connectionString: server.connectionString, role: "api" });
    servers = { server, replica, api: apiOf(server), other: apiOf(replica) };
    use(servers);
  });
  afterEach(async () => {
    await servers.api.post("/runs/cancel", { status: "all" });
  });
  afterAll(async () => {
    await servers.replica.close();
    await servers.server.close();
  });
};
