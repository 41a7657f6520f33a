import { AIMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { interrupt, MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { requestModes } from "../../../../src/engine/events/modes.ts";
import type { RunnableGraph } from "../../../../src/graphs/runnable-graph.ts";
import { publishRun, type PublishedEvents } from "./publish-run.ts";

/** The first wire's events of a run that is followed over the protocol wire. */

const INPUT = { messages: [{ id: "hello", role: "user", content: "hello" }] };

const lookUp = tool(({ word }: { word: string }) => `${word}: a star`, {
  name: "look_up",
  schema: z.object({ word: z.string() }),
});

const inner = new StateGraph(MessagesAnnotation)
  .addNode("look", async (_, config) => {
    await lookUp.invoke({ type: "tool_call", name: "look_up", id: "call_1", args: { word: "sun" } }, config);
    await lookUp.invoke({ word: "moon" }, config);
    return {};
  })
  .addNode("speak", async ({ messages }, { writer }) => {
    writer?.({ name: "inside" });
    const answer = await new FakeListChatModel({ responses: ["abc"] }).invoke(messages);
    return { messages: [new AIMessage({ id: "inner", content: answer.text })] };
  })
  .addEdge(START, "look")
  .addEdge("look", "speak")
  .compile();

const aGraph = (): RunnableGraph =>
  new StateGraph(MessagesAnnotation)
    .addNode("team", inner)
    .addNode("say", (_, { writer }) => {
      writer?.("outside");
      return { messages: [new AIMessage({ id: "said", content: "said" })] };
    })
    .addNode("ask", () => ({ messages: [interrupt("sure?") as string] }))
    .addEdge(START, "team")
    .addEdge("team", "say")
    .addEdge("say", "ask")
    .compile({ checkpointer: new MemorySaver() }) as unknown as RunnableGraph;

/**
 * Gives each run the same ids and times: generated ids are numbered in their order. Removes `run_name`, which LangGraph puts into
 * checkpoints of subgraphs unless a stream mode uses callbacks.
 */
const sameIds = ({ first }: PublishedEvents): string[] => {
  const ids = new Map<string, string>();
  return first.map(([event, data]) =>
    `${event} ${data}`
      .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}/g, (id) => {
        ids.set(id, ids.get(id) ?? `id ${ids.size}`);
        return ids.get(id) as string;
      })
      .replaceAll(/"run_name":"\w+",/g, "")
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "time"),
  );
};

const ALL_MODES = [
  "values",
  "updates",
  "messages",
  "messages-tuple",
  "debug",
  "tasks",
  "checkpoints",
  "custom",
  "tools",
];

describe.each([false, true])("with stream_subgraphs: %s", (stream_subgraphs) => {
  test.each([...ALL_MODES.map((mode) => [mode]), ALL_MODES, []])(
    "the first wire is the same whether or not a run is also streamed over the protocol wire: %s",
    async (...stream_mode) => {
      const asked = { stream_mode, stream_subgraphs };
      // Models stream if a client reads messages. LangGraph causes that, and their answers are the same.
      const [alone, followed] = await Promise.all(
        [false, true].map((publishesProtocol) =>
          publishRun(aGraph(), INPUT, { asked, publishesProtocol, configurable: { thread_id: "1" } }),
        ),
      );
      expect(sameIds(followed as PublishedEvents)).toEqual(sameIds(alone as PublishedEvents));
      expect(followed?.protocol.length).toBeGreaterThan(0);
    },
  );

  test.each([...ALL_MODES.map((mode) => [mode]), ALL_MODES])(
    "a client may also ask for lifecycles, or to resume, and gets the same events: %s",
    async (...stream_mode) => {
      const run = (further: object) =>
        publishRun(aGraph(), INPUT, {
          asked: { stream_mode, stream_subgraphs, ...further },
          publishesProtocol: false,
          configurable: { thread_id: "1" },
        });
      const [alone, withLifecycles, resumable] = await Promise.all(
        [{}, { stream_mode: [...stream_mode, "lifecycle"] }, { resumable: true }].map(run),
      );
      const events = withLifecycles?.first.filter(([event]) => !event.startsWith("lifecycle"));
      expect(sameIds({ ...withLifecycles, first: events } as PublishedEvents)).toEqual(
        sameIds(alone as PublishedEvents),
      );
      expect(sameIds(resumable as PublishedEvents)).toEqual(sameIds(alone as PublishedEvents));
    },
  );
});

test.each([...ALL_MODES.map((mode) => [mode]), ALL_MODES, []])(
  "a run without a follower creates no protocol event, and its graph runs with no extra option: %s",
  async (...stream_mode) => {
    const asked = { stream_mode, stream_subgraphs: false };
    const published = await publishRun(aGraph(), INPUT, {
      asked,
      publishesProtocol: false,
      configurable: { thread_id: "1" },
    });
    expect(published.protocol).toEqual([]);
    const streamMode = requestModes(stream_mode).langGraph;
    // Messages get their ids by a callback; no other run has one.
    const callbacks = streamMode.includes("messages") ? { callbacks: [expect.anything()] } : {};
    expect(published.asked).toEqual({ streamMode, subgraphs: false, ...callbacks });
  },
);
