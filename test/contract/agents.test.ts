import { afterAll, beforeAll } from "vitest";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { testOperations } from "./answers.ts";
import { wireOf } from "./wire.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

testOperations(
  "MCP and A2A",
  wireOf(() => server.url),
  {},
);
