import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { apiOf, type Api, type Message } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { openStream } from "../../helpers/server-sent-events.ts";
import { openFrames } from "../../protocols/streaming/frames.ts";
import { callsOf } from "./graphs/watched.ts";

/** The state that a run leaves does not depend on its readers. */

let server: TestServer;
let api: Api;
beforeAll(async () => {
  server = await startTestServer({
    graphConfigFile: fileURLToPath(new URL("./graphs/langgraph.json", import.meta.url)),
  });
  api = apiOf(server);
});
afterAll(() => server.close());

const RUN = { assistant_id: "watched", input: { messages: [] } };

/** The state without the random ids of its messages; `ids` counts the distinct ones. */
const stateOf = async (threadId: string) => {
  const { values } = await api.state(threadId);
  const withoutIds = (message: Message): Message => ({ ...message, id: "" });
  const messages = values.messages ?? [];
  return {
    messages: messages.map(withoutIds),
    ids: new Set(messages.map(({ id }) => id)).size,
    appended: (values["appended"] as Message[]).map(withoutIds),
    last: withoutIds(values["last"] as Message),
  };
};

const unwatched = async () => {
  const threadId = await api.aThread();
  await api.aFinishedRun(threadId, RUN);
  return await stateOf(threadId);
};

test("a graph whose nodes return messages without ids keeps all of them", async () => {
  const { messages, ids } = await unwatched();
  expect(messages.map(({ content }) => content)).toEqual(
    ["one", "two", "three", "a", "b", "sent 1", "sent 2", "sent 1", "sent 2"].concat([
      "inside 1",
      "inside 2",
      "a pair",
      "the end",
    ]),
  );
  expect(ids).toBe(messages.length);
});

test.each([
  { stream_mode: ["values"] },
  { stream_mode: ["messages-tuple"] },
  { stream_mode: ["messages"] },
  { stream_mode: ["messages-tuple"], stream_subgraphs: true },
  { stream_mode: ["messages-tuple", "events"] },
  { stream_mode: ["values", "updates", "messages-tuple", "tasks", "checkpoints", "debug"] },
])("a run leaves the same state when it is streamed with %j", async (streamed) => {
  const threadId = await api.aThread();
  const stream = await openStream(`${server.url}/threads/${threadId}/runs/stream`, {
    body: { ...RUN, ...streamed },
  });
  await stream.rest();
  expect(await stateOf(threadId)).toEqual(await unwatched());
});

test("a run leaves the same state when its thread is followed over event streaming", async () => {
  const threadId = await api.aThread();
  const frames = await openFrames(server.url, threadId);
  await api.aFinishedRun(threadId, RUN);
  await frames.until(({ method, params }) => method === "updates" && params.node === "pairs");
  frames.close();
  expect(await stateOf(threadId)).toEqual(await unwatched());
});

test("a streamed message has the same id as in the state", async () => {
  const threadId = await api.aThread();
  const stream = await openStream(`${server.url}/threads/${threadId}/runs/stream`, {
    body: { ...RUN, stream_mode: "messages-tuple" },
  });
  const streamed = (await stream.rest())
    .filter(({ event }) => event === "messages")
    .map(({ data }) => (data as Message[])[0]!);
  const { values } = await api.state(threadId);
  const [first, second] = values.messages ?? [];
  expect(streamed.find(({ content }) => content === "one")?.id).toBe(first?.id);
  expect(streamed.find(({ content }) => content === "two")?.id).toBe(second?.id);
});

test("a callback bound to the graph is called once, with and without a reader", async () => {
  for (const stream_mode of ["values", "messages-tuple"]) {
    const threadId = await api.aThread();
    await api.aFinishedRun(threadId, { ...RUN, stream_mode });
    const [run] = (await api.get<{ run_id: string }[]>(`/threads/${threadId}/runs`)).body;
    expect(callsOf(run!.run_id)).toBe(1);
  }
});
