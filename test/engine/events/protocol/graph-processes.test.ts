import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apiOf, saying } from "../../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../../helpers/app.ts";
import { openStream } from "../../../helpers/server-sent-events.ts";
import { isRoot, openFrames, started, type Frame } from "../../../protocols/streaming/frames.ts";

/** A graph process sends the same protocol events as a graph in the server's own process. */

let inline: TestServer;
let workers: TestServer;
beforeAll(async () => {
  [inline, workers] = await Promise.all([startTestServer(), startTestServer({ graphProcesses: 1 })]);
});
afterAll(() => Promise.all([inline.close(), workers.close()]));

const shapeOf = ({ method, params: { namespace, node, data } }: Frame): unknown[] => [
  method,
  namespace.map((segment) => segment.split(":")[0]),
  node,
  method === "messages" ? [data["event"], data["delta"], data["content"]] : [data["event"], data["node"]],
];

const published = async (server: TestServer, assistant_id: string, input: object): Promise<Frame[]> => {
  const threadId = await apiOf(server).aThread();
  const frames = await openFrames(server.url, threadId);
  await started(server.url, threadId, { assistant_id, input });
  await frames.until(isRoot("completed", "failed", "interrupted"));
  frames.close();
  return frames.seen;
};

describe("in a graph process", () => {
  test.each([
    ["tokens", { ...saying("hello"), tokens: 200 }],
    ["agent", saying("What is 2+3?")],
    ["approval", saying("Send it")],
    ["failing", saying("hello")],
  ])("a run sends the same: %s", async (assistant, input) => {
    const [here, there] = await Promise.all(
      [inline, workers].map((server) => published(server, assistant, input)),
    );
    const withoutCalls = (frames: Frame[] | undefined) =>
      JSON.stringify(frames?.map(shapeOf), (key, value: unknown) => (key === "id" ? "" : value));
    expect(JSON.parse(withoutCalls(there))).toEqual(JSON.parse(withoutCalls(here)));
  });

  test("a follower of the thread receives a run of the first wire", async () => {
    const threadId = await apiOf(workers).aThread();
    const frames = await openFrames(workers.url, threadId);
    const stream = await openStream(`${workers.url}/threads/${threadId}/runs/stream`, {
      body: { assistant_id: "two-step", input: saying("hello"), stream_mode: "updates" },
    });
    expect((await stream.rest()).map(({ event }) => event)).toEqual(["metadata", "updates", "updates"]);
    await frames.until(({ method, params }) => method === "values" && params.namespace.length === 0);
    frames.close();
  });
});

test("a run of the mode `events` streams the same whether or not its thread is followed", async () => {
  const body = { assistant_id: "agent", input: saying("hello"), stream_mode: ["events", "updates"] };
  const shown: unknown[] = [];
  for (const isFollowed of [false, true]) {
    const threadId = await apiOf(inline).aThread();
    const frames = isFollowed ? await openFrames(inline.url, threadId) : undefined;
    const stream = await openStream(`${inline.url}/threads/${threadId}/runs/stream`, { body });
    const events = await stream.rest();
    shown.push(
      events.map(({ event, data }) => {
        const { event: what, name } = data as { event?: string; name?: string };
        return [event, what, name];
      }),
    );
    await frames?.until(({ method }) => method === "messages");
    frames?.close();
  }
  expect(shown[1]).toEqual(shown[0]);
});
