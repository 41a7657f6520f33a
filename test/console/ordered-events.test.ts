import { Client } from "@langchain/langgraph-sdk";
import { messagesProjection, StreamStore } from "@langchain/langgraph-sdk/stream";
import type { BaseMessage } from "@langchain/core/messages";
import { onTestFinished, test } from "vitest";
import { orderEvents } from "../../console/src/playground/live-thread/ordered-events.ts";
import { eventually } from "../helpers/conditions.ts";

/** The namespace of a subgraph of a subgraph. */
const PLACE = ["helper:1", "thinker:2"];

const message = (seq: number, data: object, id = "ai") => ({
  ...{ type: "event", event_id: String(seq), seq, method: "messages" },
  params: { namespace: PLACE, timestamp: 1, node: "model", data: { ...data, id, run_id: `call of ${id}` } },
});
const delta = (seq: number) =>
  message(seq, {
    event: "content-block-delta",
    index: 0,
    delta: { type: "text-delta", text: `token${seq} ` },
  });
const TEXT = "token3 token4 token5 token6 ";
const EVENTS = [
  message(1, { event: "message-start", role: "ai", metadata: {} }),
  message(2, { event: "content-block-start", index: 0, content: { type: "text", text: "" } }),
  ...[3, 4, 5, 6].map(delta),
  message(7, { event: "content-block-finish", index: 0, content: { type: "text", text: TEXT } }),
  message(8, { event: "message-finish" }),
];
/** The arrival of this last message shows that all earlier ones were read. */
const LAST = [
  message(20, { event: "message-start", role: "ai", metadata: {} }, "last"),
  message(21, { event: "content-block-finish", index: 0, content: { type: "text", text: "LAST" } }, "last"),
];
const state = (seq: number, texts: string[]) => ({
  ...{ type: "event", event_id: String(seq), seq, method: "values" },
  params: {
    ...{ namespace: PLACE, timestamp: 1 },
    data: { messages: texts.map((content) => ({ type: "ai", id: `said ${content}`, content })) },
  },
});

/** The official client of a thread, over streams that a test opens and writes. */
const aThread = () => {
  const streams: { open(): void; tell(events: readonly object[]): void }[] = [];
  const fetched: typeof fetch = async () => {
    const body = new TransformStream<Uint8Array, Uint8Array>();
    const writer = body.writable.getWriter();
    const opened = new Promise<void>((open) =>
      streams.push({
        open,
        tell: (events) => {
          const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
          void writer.write(new TextEncoder().encode(text)).catch(() => undefined);
        },
      }),
    );
    await opened;
    return new Response(body.readable, { headers: { "content-type": "text/event-stream" } });
  };
  const client = new Client({ apiUrl: "http://127.0.0.1", apiKey: null });
  const thread = client.threads.stream("thread", { assistantId: "agent", fetch: fetched });
  onTestFinished(() => thread.close());
  orderEvents(thread);
  return { thread, streams };
};

/** The messages of the innermost graph for a reader that opens its stream after `early` was sent. */
const shownTo = async (early: readonly object[], replayed: readonly object[]) => {
  const { thread, streams } = aThread();
  const around = thread.subscribe({
    ...{ channels: ["messages", "values"], namespaces: [["helper:1"]], depth: 1 },
  });
  (await eventually("a stream is asked for", () => streams[0])).open();
  await around;
  const store = new StreamStore<BaseMessage[]>([]);
  const { dispose } = messagesProjection(PLACE).open({
    ...{ thread, store: store as never },
    rootBus: { channels: [], subscribe: () => () => undefined },
  });
  onTestFinished(() => dispose());
  const own = await eventually("another stream is asked for", () => streams[1]);
  streams[0]?.tell(early);
  const last = early.at(-1) as { event_id: string } | undefined;
  await eventually("it is read", () => thread.ordering.lastEventId === last?.event_id || undefined);
  own.open();
  own.tell([...replayed, ...LAST]);
  const shown = (): string[] => store.getSnapshot().map(({ text }) => text);
  await eventually("all is read", () => shown().includes("LAST") || undefined);
  return () => shown().filter((text) => text !== "LAST");
};

test.each([
  ["the middle", EVENTS.slice(3, 5), EVENTS.slice(0, 6), TEXT],
  ["the end", EVENTS.slice(5), EVENTS, TEXT],
  ["all", EVENTS, EVENTS, TEXT],
  ["the beginning", EVENTS.slice(0, 4), EVENTS.slice(0, 5), "token3 token4 token5 "],
  ["nothing", [], EVENTS.slice(0, 4), "token3 token4 "],
])(
  "a subgraph's message is shown whole if %s was sent before its reader's own stream",
  async (_, early, replayed, text) => {
    const shown = await shownTo(early, replayed);
    await eventually(`"${text}" is shown`, () => shown().join() === text || undefined);
  },
);

test("an older state that arrives later removes no messages", async () => {
  const states = [state(1, ["one"]), state(2, ["one", "two"]), state(3, ["one", "two", "three"])];
  const shown = await shownTo(states.slice(2), states);
  await eventually("all are shown", () => shown().join() === "one,two,three" || undefined);
});
