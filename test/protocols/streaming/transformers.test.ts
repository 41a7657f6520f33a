import { fileURLToPath } from "node:url";
import { Client } from "sdk-1.15";
import { afterAll, beforeAll, expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { EVERYTHING, isRoot, openFrames, started } from "./frames.ts";

/** Graphs compiled with transformers, whose output reaches clients. */

let server: TestServer;
beforeAll(async () => {
  const graphConfigFile = fileURLToPath(new URL("graphs/langgraph.json", import.meta.url));
  server = await startTestServer({ graphConfigFile });
});
afterAll(() => server.close());

const TURN = { assistant_id: "transformed", input: { text: "" } };

test("channels and final values of a transformer are custom events, and hidden events are not sent", async () => {
  const threadId = newId();
  const stream = await openFrames(server.url, threadId, { channels: EVERYTHING });
  await started(server.url, threadId, TURN);
  await stream.until(isRoot("completed"));
  stream.close();
  const custom = stream.seen.filter(({ method }) => method === "custom").map(({ params }) => params.data);
  expect(custom).toEqual([
    { name: "steps", payload: { node: "first" } },
    { name: "steps", payload: { node: "second" } },
    { name: "summary", payload: { nodes: ["first", "second"] } },
  ]);
  const methods = new Set(stream.seen.map(({ method }) => method));
  expect([methods.has("tasks"), methods.has("updates"), methods.has("values")]).toEqual([false, true, true]);
});

test("the official client finds them under thread.extensions", async () => {
  const client = new Client({ apiUrl: server.url, apiKey: null });
  const thread = client.threads.stream(newId(), { assistantId: "transformed" });
  const extensions = thread.extensions as unknown as {
    steps: AsyncIterable<unknown>;
    summary: PromiseLike<unknown>;
  };
  const steps = (async () => {
    const seen: unknown[] = [];
    for await (const step of extensions.steps) seen.push(step);
    return seen;
  })();
  await thread.run.start({ input: TURN.input });
  expect(await extensions.summary).toEqual({ nodes: ["first", "second"] });
  expect(await steps).toEqual([{ node: "first" }, { node: "second" }]);
  await thread.close();
});
