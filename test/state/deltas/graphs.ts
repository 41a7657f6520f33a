/**
 * Values in delta channels, which LangGraph puts together from the writes of earlier steps. Each node writes how much it has read, so a lost
 * value shows in all later ones.
 */
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import {
  Annotation,
  DeltaValue,
  END,
  MessagesDeltaValue,
  messagesDeltaReducer,
  messagesStateReducer,
  START,
  StateGraph,
  StateSchema,
  interrupt,
  type LangGraphRunnableConfig,
} from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { z } from "zod";
import { waitAtGate } from "../../fixtures/gates.ts";

const list = (snapshotFrequency?: number) =>
  new DeltaValue(
    z.array(z.string()).default(() => []),
    {
      inputSchema: z.string(),
      reducer: (now: string[], writes: string[]) => [...now, ...writes],
      ...(snapshotFrequency === undefined ? {} : { snapshotFrequency }),
    },
  );

const messages = (snapshotFrequency?: number) =>
  snapshotFrequency === undefined
    ? MessagesDeltaValue
    : new DeltaValue(
        z.custom<BaseMessage[]>().default(() => []),
        { inputSchema: z.custom<BaseMessage[]>(), reducer: messagesDeltaReducer, snapshotFrequency },
      );

/** Snapshots of the three lists fall on different steps. Undefined: LangGraph's default, a thousand steps. */
const build = (frequency?: number) => {
  const Memory = new StateSchema({ notes: list(frequency && frequency - 1) });
  const memory = new StateGraph(Memory)
    .addNode("keep", ({ notes }) => ({ notes: `kept ${notes.length}` }))
    .addEdge(START, "keep")
    .addEdge("keep", END)
    .compile({ checkpointer: true });
  const State = new StateSchema({
    messages: messages(frequency && frequency + 1),
    items: list(frequency),
    each: list(frequency && 1),
    told: z.string().optional(),
    cmd: z.string().optional(),
  });
  return new StateGraph(State)
    .addNode("one", ({ items, messages }) => ({
      items: `one ${items.length}`,
      messages: [new AIMessage({ id: `answer ${messages.length}`, content: `read ${messages.length}` })],
    }))
    .addNode("wide", ({ items, each }) => ({ each: `each ${each.length} of ${items.length}` }))
    .addNode("ask", async ({ cmd }, config: LangGraphRunnableConfig) => {
      const { thread_id: threadId } = config.configurable as { thread_id: string };
      if (cmd === "fail") throw new Error("This node fails.");
      if (cmd === "wait") await waitAtGate(`${threadId} ${performance.now()}`, threadId, config.signal);
      return cmd === "ask" ? { items: `said ${interrupt<string, string>("really?")}` } : {};
    })
    .addNode("last", async ({ items }) => {
      const { notes } = await memory.invoke({ notes: `told ${items.length}` });
      return { items: `last ${items.length}`, told: notes.join(", ") };
    })
    .addEdge(START, "one")
    .addEdge("one", "wide")
    .addEdge("wide", "ask")
    .addEdge("ask", "last")
    .addEdge("last", END);
};

/** The same names, before their author made them delta channels. */
const buildPlain = () => {
  const plain = <Value>() =>
    Annotation<Value[], Value | Value[]>({ reducer: (now, more) => now.concat(more), default: () => [] });
  const State = Annotation.Root({
    messages: Annotation<BaseMessage[]>({ reducer: messagesStateReducer, default: () => [] }),
    items: plain<string>(),
    each: plain<string>(),
    told: Annotation<string>(),
    cmd: Annotation<string>(),
  });
  return new StateGraph(State)
    .addNode("one", ({ items }) => ({ items: `plain ${items.length}`, each: "plain" }))
    .addNode("last", ({ items }) => ({ items: `last ${items.length}` }))
    .addEdge(START, "one")
    .addEdge("one", "last")
    .addEdge("last", END);
};

export const compiled = {
  frequent: (checkpointer?: BaseCheckpointSaver) => build(3).compile({ checkpointer }),
  seldom: (checkpointer?: BaseCheckpointSaver) => build().compile({ checkpointer }),
  plain: (checkpointer?: BaseCheckpointSaver) => buildPlain().compile({ checkpointer }),
};
export const frequent = compiled.frequent();
export const seldom = compiled.seldom();
export const plain = compiled.plain();
