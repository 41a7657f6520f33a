import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { isAtGate } from "../../fixtures/gates.ts";
import { eventually } from "../../helpers/conditions.ts";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { readStream } from "../../helpers/server-sent-events.ts";

/** A run fails if its graph makes a too large value, event or error, and the server stays healthy. */

let server: TestServer;
let api: Api;
beforeAll(async () => {
  server = await startTestServer({
    graphConfigFile: fileURLToPath(new URL("./graphs/sizes.langgraph.json", import.meta.url)),
    stateValueCharactersAtMost: 1_000_000,
    eventCharactersAtMost: 500_000,
  });
  api = apiOf(server);
});
afterAll(async () => {
  await server.close();
});

const run = (kind: string, characters: number, fields: object = {}) => ({
  assistant_id: "sizes",
  input: { kind, characters },
  stream_mode: ["updates"],
  ...fields,
});

test.each(["value", "list", "items"])("a state with too much in a %s fails its run", async (kind) => {
  const threadId = await api.aThread();
  const { run_id } = await api.aRun(threadId, run(kind, 1_500_000));
  const ended = await api.untilRunIs(threadId, run_id, "error", "success");
  expect(ended).toMatchObject({
    status: "error",
    error: {
      error: "ValueTooLargeError",
      message: "A value of the state takes more than 1 MB as JSON, which is the most that is taken.",
    },
  });
  // The thread is still usable.
  const result = await api.aFinishedRun(threadId, run("small", 1));
  expect(result.made).toBe("small");
});

test("a value just below the limit is stored", async () => {
  const threadId = await api.aThread();
  await api.aFinishedRun(threadId, run("value", 900_000, { stream_mode: [] }));
  const { values } = await api.state(threadId);
  expect((values.made as { text: string }).text).toHaveLength(900_000);
});

test("a too large event fails a run with a reader, which receives the reason", async () => {
  const threadId = await api.aThread();
  const body = run("event", 600_000, { stream_mode: ["custom"] });
  const answer = await fetch(`${server.url}/threads/${threadId}/runs/stream`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  expect(text).toContain("event: error");
  expect(text).toContain("An event 'custom' takes more than 0.5 MB as JSON");
  expect(text.length).toBeLessThan(10_000);
  expect((await api.aFinishedRun(threadId, run("small", 1))).made).toBe("small");
});

test("a graph whose run failed of a too large event is stopped", async () => {
  const gate = newId();
  const threadId = await api.aThread();
  const input = { kind: "event", characters: 600_000, gate };
  const events = await readStream(`${server.url}/threads/${threadId}/runs/stream`, {
    body: run("event", 600_000, { input, stream_mode: ["custom"] }),
  });
  expect(events.at(-1)).toMatchObject({ event: "error", data: { error: "ValueTooLargeError" } });
  await eventually("the node's signal fires", () => !isAtGate(gate));
});

test("an error with a message of megabytes is shortened", async () => {
  const threadId = await api.aThread();
  const { run_id } = await api.aRun(threadId, run("error", 20_000_000));
  const ended = await api.untilRunIs(threadId, run_id, "error");
  const { message } = ended.error as { message: string };
  expect(message.length).toBeLessThan(20_000);
  expect(message).toContain("(20000000 characters, cut)");
  expect(JSON.stringify(await api.thread(threadId)).length).toBeLessThan(100_000);
  expect(JSON.stringify(await api.history(threadId)).length).toBeLessThan(100_000);
  expect(server.lines.join("").length).toBeLessThan(1_000_000);
});
