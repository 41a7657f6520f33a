import type * as Sdk from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestServer, type TestServer } from "../helpers/app.ts";

/** Each line of the SDK that people have in their projects, side by side (see devDependencies). */
const LINES = ["sdk-1.8", "@langchain/langgraph-sdk", "sdk-1.15", "sdk-2.0"];

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

// At the same time: a heartbeat comes after five seconds.
describe.concurrent.each(LINES)("%s", { timeout: 20_000 }, (line) => {
  const aClient = async () => {
    const { Client } = (await import(line)) as typeof Sdk;
    return new Client({ apiUrl: server.url });
  };

  test("hears a heartbeat as nothing, also when it has seen an event's id", async () => {
    const client = await aClient();
    const { thread_id: threadId } = await client.threads.create();
    const events: { id?: string; event: string; data: unknown }[] = [];
    for await (const event of client.runs.stream(threadId, "sleep", {
      input: { messages: [], milliseconds: 5_500 },
      streamMode: "values",
    })) {
      events.push(event);
    }
    expect(events.filter(({ data }) => data === null || data === undefined)).toEqual([]);
    expect(events.map(({ event }) => event)).toEqual(["metadata", "values", "values"]);
    expect(events.map(({ id }) => id)).toEqual(["0", "1", "2"]);
  });
});
