import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { HttpAgent } from "@ag-ui/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { directory } from "../../access/open/directory.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import type { Event } from "./clients.ts";

/** Longer than the test takes: a stream that ends before was ended by the server. */
const LONG_MS = 60_000;
const TOKEN = "alice-4711";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    graphConfigFile: fileURLToPath(new URL("../../access/open/langgraph.json", import.meta.url)),
    accessCheckSeconds: 1,
  });
});
afterAll(async () => {
  directory.expired.delete(TOKEN);
  await server.close();
});

test("a stream whose token expires ends with a RUN_ERROR that says why", async () => {
  const agent = new HttpAgent({
    url: `${server.url}/agui/sleep`,
    headers: { authorization: `Bearer ${TOKEN}` },
    initialState: { milliseconds: LONG_MS },
    initialMessages: [{ id: randomUUID(), role: "user", content: "x" }],
  });
  const events: Event[] = [];
  await agent.runAgent(
    {},
    {
      onEvent: ({ event }) => {
        events.push(event as Event);
        if (event.type === "CUSTOM") directory.expired.add(TOKEN);
      },
    },
  );
  expect(events.at(-1)).toMatchObject({
    type: "RUN_ERROR",
    code: "AccessLost",
    message: "The token has expired.",
  });
});
