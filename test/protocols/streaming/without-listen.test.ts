import { afterAll, beforeAll, expect, test } from "vitest";
import { apiOf } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { openStream, type SentEvent } from "../../helpers/server-sent-events.ts";

/** A thread's stream on a server without signals, while another server executes the run. */

let server: TestServer;
let replica: TestServer;
beforeAll(async () => {
  server = await startTestServer({ databaseListen: false });
  const { connectionString } = server;
  replica = await startTestServer({ connectionString, databaseListen: false, role: "api" });
});
afterAll(async () => {
  await replica.close();
  await server.close();
});

test("a run with missing events is not reported as complete", async () => {
  const api = apiOf(server);
  const threadId = await api.aThread();
  const stream = await openStream(`${replica.url}/threads/${threadId}/stream`);
  await api.aRun(threadId, { assistant_id: "sleep", input: { milliseconds: 1_500 }, stream_mode: "values" });
  const seen: SentEvent[] = [];
  const isDone = ({ data }: SentEvent): boolean => (data as { status?: string }).status === "run_done";
  const readToTheEnd = async (): Promise<string> => {
    for (;;) {
      const event = await stream.next();
      if (event === undefined) return "ended cleanly";
      seen.push(event);
      if (isDone(event)) return "done";
    }
  };
  // The stream is cut, so the client knows, or no event is missing.
  const end = await readToTheEnd().catch(() => "cut");
  expect([end, seen.some(({ event }) => event === "values")]).toEqual(
    end === "cut" ? ["cut", false] : ["done", true],
  );
});
