import { afterAll, beforeAll } from "vitest";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { freshDatabase } from "../helpers/database.ts";
import { testOperations } from "./answers.ts";
import { MISSING, wireOf, type WireAnswer } from "./wire.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

const wire = wireOf(() => server.url);
const { send } = wire;

const SEND = {
  jsonrpc: "2.0",
  id: "1",
  method: "message/send",
  params: { message: { role: "user", messageId: "m", parts: [{ kind: "text", text: "hello" }] } },
};
const REVISION = "2026-07-28";
const LIST = {
  jsonrpc: "2.0",
  id: "1",
  method: "tools/list",
  params: {
    _meta: {
      "io.modelcontextprotocol/protocolVersion": REVISION,
      "io.modelcontextprotocol/clientInfo": { name: "contract", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": {},
    },
  },
};
const NO_JSON = Buffer.from("{");
const HEADERS = {
  accept: "application/json, text/event-stream",
  "mcp-protocol-version": REVISION,
  "mcp-method": "tools/list",
};

const withoutDatabase = async (ask: (send: typeof wire.send) => Promise<WireAnswer>): Promise<WireAnswer> => {
  const database = await freshDatabase();
  const orphan = await startTestServer({ connectionString: database.connectionString });
  try {
    await database.drop();
    return await ask(wireOf(() => orphan.url).send);
  } finally {
    await orphan.close();
  }
};

testOperations("MCP and A2A", wire, {
  "POST /a2a/{assistant_id}": {
    200: () => send("POST /a2a/agent", SEND),
    400: () => send("POST /a2a/agent", NO_JSON),
    404: () => send(`POST /a2a/${MISSING}`, SEND),
    500: () => withoutDatabase((ask) => ask("POST /a2a/agent", SEND)),
  },
  "POST /mcp/": {
    200: () => send("POST /mcp/", LIST, HEADERS),
    400: () => send("POST /mcp/", NO_JSON, HEADERS),
    405: () => send("GET /mcp/"),
    500: () => withoutDatabase((ask) => ask("POST /mcp/", LIST, HEADERS)),
  },
  "GET /mcp/": { 405: () => send("GET /mcp/") },
  "DELETE /mcp/": { 404: () => send("DELETE /mcp/") },
});
