import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { EVERYTHING, isRoot, openFrames } from "../protocols/streaming/frames.ts";
import { testOperations } from "./answers.ts";
import { violationsOfSchema } from "./contract.ts";
import { MISSING, wireOf } from "./wire.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

const wire = wireOf(() => server.url);
const { send } = wire;
const command = (id: number, method: string, params: object) => ({ id, method, params });

testOperations("Streams of threads", wire, {
  "GET /threads/{thread_id}/stream": {
    200: async () => wire.head(`GET /threads/${await wire.aThread()}/stream?stream_modes=run_modes`),
    404: () => send(`GET /threads/${MISSING}/stream`),
    422: () => send("GET /threads/first/stream"),
  },
  "POST /threads/{thread_id}/stream/events": {
    200: async () =>
      wire.head(`POST /threads/${await wire.aThread()}/stream/events`, { channels: ["values", "custom:a"] }),
    400: async () => send(`POST /threads/${await wire.aThread()}/stream/events`, { channels: [] }),
  },
  "POST /threads/{thread_id}/commands": {
    200: async () =>
      send(
        `POST /threads/${await wire.aThread()}/commands`,
        command(1, "run.start", { assistant_id: "two-step", input: { messages: [] } }),
      ),
    400: async () => send(`POST /threads/${await wire.aThread()}/commands`, { method: 1 }),
  },
});

test.each(["two-step", "approval", "research", "tokens", "failing", "sleep"])(
  "every frame of a turn of '%s' is a ProtocolEvent of the contract",
  async (assistant) => {
    const threadId = await wire.aThread();
    const stream = await openFrames(server.url, threadId, { channels: EVERYTHING });
    const input = { messages: [], topic: "cats", tokens: 3, milliseconds: 1, reason: "out of luck" };
    await wire.must(
      `POST /threads/${threadId}/commands`,
      command(1, "run.start", { assistant_id: assistant, input }),
    );
    await stream.until(isRoot("completed", "failed", "interrupted"));
    stream.close();
    const violations = stream.seen.flatMap((frame) => violationsOfSchema("ProtocolEvent", frame));
    expect(violations).toEqual([]);
    expect(stream.seen.length).toBeGreaterThan(1);
  },
);
