import { Client } from "@langchain/langgraph-sdk";
import { Client as NewClient } from "sdk-1.15";
import { afterAll, beforeAll, expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { apiOf, saying } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";

/** Turns with a question and its answer on one thread, each in a new session of the SDK. */

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

const SESSIONS = 10;

for (const [line, Line] of [
  ["1.12", Client],
  ["1.15", NewClient as unknown as typeof Client],
] as const) {
  test(`each session of the SDK ${line} receives its own run, its own question and its own end`, async () => {
    const client = new Line({ apiUrl: server.url, apiKey: null });
    const threadId = newId();
    for (let session = 0; session < SESSIONS; session += 1) {
      const thread = client.threads.stream(threadId, { assistantId: "approval" });
      await thread.run.start({ input: saying(`topic ${session}`) });
      const values: unknown[] = [];
      for await (const value of thread.values) values.push(value);
      expect(values.length).toBeGreaterThan(0);
      expect(thread.interrupted).toBe(true);
      expect(thread.interrupts).toHaveLength(1);
      const [asked] = thread.interrupts;
      expect((asked?.payload as { draft: string }).draft).toContain(`"topic ${session}"`);
      await thread.input.respond({
        namespace: [],
        interrupt_id: asked?.interruptId ?? "",
        response: true,
      });
      const rest = await thread.subscribe(["messages", "lifecycle"]);
      for await (const event of rest) {
        const { method, params } = event as { method: string; params: { data: { event?: string } } };
        if (method === "lifecycle" && params.data.event === "completed") break;
      }
      await thread.close();
      const state = await apiOf(server).state(threadId);
      expect(state.values["status"]).toBe("sent");
      expect(state.values.messages).toHaveLength(2 * (session + 1));
    }
  });

  test(`a session of the SDK ${line} that subscribes first, on a thread with earlier runs, reads its own run to its end`, async () => {
    const client = new Line({ apiUrl: server.url, apiKey: null });
    const threadId = newId();
    for (let session = 0; session < SESSIONS; session += 1) {
      const thread = client.threads.stream(threadId, { assistantId: "approval" });
      const events = await thread.subscribe(["values", "lifecycle"]);
      // Alternates a run with a question, and the answer to it.
      const input = session % 2 === 0 ? saying(`topic ${session}`) : true;
      const { run_id: runId = "" } = await thread.run.start({ input });
      const sent: string[] = [];
      for await (const event of events) sent.push(event.event_id ?? "");
      expect(sent).toContain(`synth:${runId}:running`);
      const ends = sent.filter((id) => /:(interrupted|completed)$/.test(id));
      expect(ends).toEqual([`synth:${runId}:${session % 2 === 0 ? "interrupted" : "completed"}`]);
      await thread.close();
    }
  });
}
