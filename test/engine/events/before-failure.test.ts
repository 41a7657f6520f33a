import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { namesOf, openStream, readStream, type SentEvent } from "../../helpers/server-sent-events.ts";

/** Five times what a reader gets at once. */
const [COUNT, BYTES] = [50, 100_000];

const ERROR = { error: "Error", message: "broken" };

const custom = (events: readonly SentEvent[]): number[] =>
  events
    .filter(({ event }) => event.startsWith("custom"))
    .map(({ data }) => (data as { index: number }).index);

const counted = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

describe.each([
  ["in the server's own process", 0],
  ["in a graph process", 1],
])("%s", (_, graphProcesses) => {
  let server: TestServer;
  let api: Api;
  beforeAll(async () => {
    const graphConfigFile = fileURLToPath(new URL("./graphs/langgraph.json", import.meta.url));
    server = await startTestServer({ graphConfigFile, graphProcesses });
    api = apiOf(server);
  });
  afterAll(() => server.close());

  const streamed = async (body: { input: object } & Record<string, unknown>): Promise<SentEvent[]> =>
    await readStream(`${server.url}/threads/${await api.aThread()}/runs/stream`, {
      body: { assistant_id: "breaking", ...body, input: { count: COUNT, bytes: BYTES, ...body.input } },
    });

  describe.each([false, true])("of a run with stream_resumable: %s", (stream_resumable) => {
    test.each([
      ["messages-tuple", "messages"],
      ["messages", "messages/partial"],
    ])("every token before a failure reaches the reader (%s)", async (stream_mode, name) => {
      const events = await streamed({ stream_mode, stream_resumable, input: { how: "tokens" } });
      expect(namesOf(events).filter((event) => event === name)).toHaveLength(COUNT);
      expect(events.at(-1)).toMatchObject({ event: "error", data: ERROR });
    });

    test("every inner event before a failure reaches the reader", async () => {
      const events = await streamed({ stream_mode: "events", stream_resumable, input: { how: "tokens" } });
      const inner = events.filter(({ event }) => event === "events");
      const tokens = inner.filter(({ data }) => (data as { event: string }).event === "on_chat_model_stream");
      expect(tokens).toHaveLength(COUNT);
      expect(events.at(-1)).toMatchObject({ event: "error", data: ERROR });
    });

    test.each(["breaking", "breaking-nested"])(
      "every custom event before a failure reaches the reader, beside other modes (%s)",
      async (assistant_id) => {
        const events = await streamed({
          assistant_id,
          stream_mode: ["custom", "values", "updates", "tasks", "debug"],
          stream_subgraphs: true,
          stream_resumable,
          input: { how: "events" },
        });
        expect(custom(events)).toEqual(counted(COUNT));
        expect(events.at(-1)).toMatchObject({ event: "error", data: ERROR });
      },
    );

    test.each(["async", "sync", "exit"])(
      "what a node streams at once before it fails reaches the reader (durability %s)",
      async (durability) => {
        const events = await streamed({
          stream_mode: "custom",
          stream_resumable,
          durability,
          input: { how: "burst" },
        });
        expect(custom(events)).toEqual(counted(COUNT));
      },
    );

    test("a node that fails beside one that asks loses none of its events", async () => {
      const events = await streamed({
        assistant_id: "breaking-beside",
        stream_mode: "custom",
        stream_resumable,
        input: { how: "burst" },
      });
      expect(custom(events)).toEqual(counted(COUNT));
    });

    test("what a graph streamed before it is cancelled reaches the reader", async () => {
      const threadId = await api.aThread();
      const stream = await openStream(`${server.url}/threads/${threadId}/runs/stream`, {
        body: {
          assistant_id: "breaking",
          stream_mode: "custom",
          stream_resumable,
          input: { how: "burst", count: COUNT, bytes: BYTES, stays: true },
        },
      });
      await stream.until(({ event }) => event === "custom");
      const [run] = await api.runs(threadId);
      await api.cancel(threadId, run?.run_id ?? "");
      expect(custom(await stream.rest())).toEqual(counted(COUNT));
    });
  });
});
