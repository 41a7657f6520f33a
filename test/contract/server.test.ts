import { afterAll, beforeAll } from "vitest";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { freshDatabase } from "../helpers/database.ts";
import { testOperations } from "./answers.ts";
import { wireOf } from "./wire.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

const wire = wireOf(() => server.url);
const { send } = wire;

testOperations("Server", wire, {
  "GET /info": { 200: () => send("GET /info") },
  "GET /metrics": { 200: () => send("GET /metrics?format=json") },
  "GET /docs": { 200: () => send("GET /docs") },
  "GET /ok": {
    200: () => send("GET /ok?check_db=1"),
    500: async () => {
      const database = await freshDatabase();
      const orphan = await startTestServer({ connectionString: database.connectionString });
      try {
        await database.drop();
        return await wireOf(() => orphan.url).send("GET /ok?check_db=1");
      } finally {
        await orphan.close();
      }
    },
  },
});
