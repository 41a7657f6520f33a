import { fileURLToPath } from "node:url";
import type * as Sdk from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apiOf, type Api, type Message } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { openStream } from "../../helpers/server-sent-events.ts";
import { isRoot, openFrames, started, type Frame } from "../../protocols/streaming/frames.ts";
import { PIECES, type Callback } from "./graphs/speakers.ts";

/**
 * LangChain's models call `handleLLMNewToken` themselves for each chunk, and some never do. Clients must receive each piece once with any
 * model.
 */

let server: TestServer;
let api: Api;
beforeAll(async () => {
  server = await startTestServer({
    graphConfigFile: fileURLToPath(new URL("./graphs/langgraph.json", import.meta.url)),
  });
  api = apiOf(server);
});
afterAll(() => server.close());

const WHOLE = PIECES.join("");
const turn = (speech: object, assistant_id = "speakers") => ({
  assistant_id,
  input: { messages: [], speech },
});

const framesOf = async (run: object, threadId?: string): Promise<Frame[]> => {
  const thread = threadId ?? (await api.aThread());
  const frames = await openFrames(server.url, thread);
  await started(server.url, thread, run);
  await frames.until(isRoot("completed", "failed"));
  frames.close();
  return frames.seen.filter(({ method }) => method === "messages");
};
const textsIn = (frames: Frame[]): string[] =>
  frames.flatMap(({ params }) => {
    const delta = params.data["delta"] as { type: string; text: string } | undefined;
    return delta?.type === "text-delta" ? [delta.text] : [];
  });

/** Messages of the mode `messages-tuple`, with their metadata. */
const tuplesOf = async (run: object, threadId?: string): Promise<[Message, Record<string, unknown>][]> => {
  const stream = await openStream(`${server.url}/threads/${threadId ?? (await api.aThread())}/runs/stream`, {
    body: { ...run, stream_mode: "messages-tuple", stream_subgraphs: true },
  });
  return (await stream.rest())
    .filter(({ event }) => event.split("|")[0] === "messages")
    .map(({ data }) => data as [Message, Record<string, unknown>]);
};
const contentsOf = (tuples: [Message, unknown][]): unknown[] => tuples.map(([{ content }]) => content);

describe.each([
  ["invoked", {}],
  ["streamed by its node", { streams: true }],
])("a model that is %s", (_, how) => {
  test.each<Callback>(["never", "behind", "before", "late"])(
    "sends each piece once if it calls back %s",
    async (callback) => {
      const run = turn({ callback, ...how });
      expect(textsIn(await framesOf(run))).toEqual(PIECES);
      expect(contentsOf(await tuplesOf(run))).toEqual(PIECES);
    },
  );
});

test("the pieces have the id of the message in the state, and name their node", async () => {
  const threadId = await api.aThread();
  const tuples = await tuplesOf(turn({ callback: "never" }), threadId);
  const { values } = await api.state(threadId);
  const id = values.messages?.[0]?.id;
  expect(new Set(tuples.map(([message]) => message.id))).toEqual(new Set([id]));
  expect(new Set(tuples.map(([, { langgraph_node }]) => langgraph_node))).toEqual(new Set(["speak"]));

  const followed = await api.aThread();
  const frames = await framesOf(turn({ callback: "never" }), followed);
  const state = await api.state(followed);
  expect(new Set(frames.map(({ params }) => params.data["id"]))).toEqual(
    new Set([state.values.messages?.[0]?.id]),
  );
});

test("a subgraph sends them under its own namespace", async () => {
  const run = turn({ callback: "never" }, "speakers-nested");
  const frames = await framesOf(run);
  expect(textsIn(frames)).toEqual(PIECES);
  expect(new Set(frames.map(({ params }) => params.namespace.join("|").split(":")[0]))).toEqual(
    new Set(["inner"]),
  );
  expect(contentsOf(await tuplesOf(run))).toEqual(PIECES);
});

test("several answers of one model are several messages", async () => {
  const run = turn({ callback: "never", times: 3 });
  const frames = await framesOf(run);
  expect(textsIn(frames)).toEqual([...PIECES, ...PIECES, ...PIECES]);
  expect(frames.filter(({ params }) => params.data["event"] === "message-start")).toHaveLength(3);
  const tuples = await tuplesOf(run);
  expect(new Set(tuples.map(([{ id }]) => id)).size).toBe(3);
});

test.each(["langsmith:nostream", "nostream"])("nothing is sent of a model with the tag %s", async (tag) => {
  const run = turn({ callback: "never", tags: [tag] });
  expect(await framesOf(run)).toEqual([]);
  const tuples = await tuplesOf(run);
  // LangGraph sends the message that the node returns.
  expect(contentsOf(tuples)).toEqual([WHOLE]);
});

test("a model that fails after its first piece has sent that piece", async () => {
  const run = turn({ callback: "never", failsBehind: 1 });
  const frames = await framesOf(run);
  expect(textsIn(frames)).toEqual([PIECES[0]]);
  expect(frames.at(-1)?.params.data).toMatchObject({ event: "error" });
  expect(contentsOf(await tuplesOf(run))).toEqual([PIECES[0]]);
});

test.each<Callback>(["never", "behind"])(
  "a model that forwards one that calls back %s sends each piece once",
  async (callback) => {
    const run = turn({ callback, passes: true });
    expect(textsIn(await framesOf(run))).toEqual(PIECES);
    expect(contentsOf(await tuplesOf(run))).toEqual(PIECES);
  },
);

test("a model that begins with an empty piece and then calls back needs no help", async () => {
  const run = turn({ callback: "empty-first" });
  expect(textsIn(await framesOf(run))).toEqual(PIECES);
  expect(contentsOf(await tuplesOf(run))).toEqual(PIECES);
});

test.each<Callback>(["never", "behind"])(
  "the state is the same with and without readers if a model calls back %s",
  async (callback) => {
    const stateAfter = async (execute: (threadId: string) => Promise<unknown>) => {
      const threadId = await api.aThread();
      await execute(threadId);
      const { values } = await api.state(threadId);
      return values.messages?.map(({ id: _, type: __, ...message }) => message);
    };
    const run = turn({ callback });
    const unwatched = await stateAfter((threadId) => api.aFinishedRun(threadId, run));
    expect(unwatched).toMatchObject([{ content: WHOLE, response_metadata: { finish_reason: "stop" } }]);
    expect(await stateAfter((threadId) => tuplesOf(run, threadId))).toEqual(unwatched);
    expect(await stateAfter((threadId) => framesOf(run, threadId))).toEqual(unwatched);
  },
);

/** The pieces of the arguments of the model's call. */
const ARGUMENTS = PIECES.map((piece, index) =>
  index === 0 ? `{"said":"${piece}` : index === PIECES.length - 1 ? `${piece}"}` : piece,
);

test("arguments of a call are streamed piece by piece", async () => {
  const frames = await framesOf(turn({ callback: "never", calls: true }));
  const data = frames.map(({ params }) => params.data);
  expect(data.flatMap(({ delta }) => (delta === undefined ? [] : [delta]))).toEqual(
    ARGUMENTS.map((args) => ({ type: "tool-call-delta", args })),
  );
  expect(data.find(({ event }) => event === "content-block-finish")?.["content"]).toEqual({
    type: "tool_call",
    id: "call_1",
    name: "say",
    args: { said: WHOLE },
  });
});

test.each(["sdk-1.9", "sdk-1.11", "@langchain/langgraph-sdk", "sdk-1.15"])(
  "%s assemble the arguments from the pieces",
  async (sdk) => {
    const { MessageAssembler } = (await import(sdk)) as typeof Sdk;
    const assembler = new MessageAssembler();
    const frames = await framesOf(turn({ callback: "never", calls: true }));
    const grown = frames.flatMap((frame) => {
      const update = assembler.consume(frame as unknown as Parameters<typeof assembler.consume>[0]);
      return update?.kind === "content-block-delta" ? [structuredClone(update.message.blocks)] : [];
    });
    expect(grown).toEqual(
      ARGUMENTS.map((_, index) => [
        expect.objectContaining({
          type: "tool_call_chunk",
          id: "call_1",
          name: "say",
          args: ARGUMENTS.slice(0, index + 1).join(""),
        }),
      ]),
    );
  },
);
