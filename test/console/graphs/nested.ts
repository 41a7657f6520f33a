/** A subgraph in a node, with another one inside, and one that a tool calls; each waits at the gate after its first message. */
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Annotation, END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { z } from "zod";
import { waitAtGate } from "./gate.ts";
import { TypingModel } from "./typing.ts";

const expert = new StateGraph(MessagesAnnotation)
  .addNode("answer", async ({ messages }, config) => ({
    messages: [await new TypingModel(3, 60).invoke(messages, config)],
  }))
  .addNode("wait", async () => {
    await waitAtGate();
    return {};
  })
  .addEdge(START, "answer")
  .addEdge("answer", "wait")
  .addEdge("wait", END)
  .compile();

const askExpert = tool(
  async ({ question }, config) => {
    const { messages } = await expert.invoke({ messages: [new HumanMessage(question)] }, config);
    return `The expert said: ${messages.at(-1)?.text ?? ""}`;
  },
  { name: "ask_expert", description: "Asks an expert.", schema: z.object({ question: z.string() }) },
);

const thinker = new StateGraph(MessagesAnnotation)
  .addNode("think", () => ({ messages: [new AIMessage("I think about it.")] }))
  .addNode("wait", async () => {
    await waitAtGate();
    return {};
  })
  .addEdge(START, "think")
  .addEdge("think", "wait")
  .addEdge("wait", END)
  .compile();

const Helping = Annotation.Root({ ...MessagesAnnotation.spec, notes: Annotation<string>() });

const helper = new StateGraph(Helping)
  .addNode("note", () => ({ notes: "He asks why.", messages: [new AIMessage("Let me ask an expert.")] }))
  .addNode("thinker", thinker)
  .addEdge(START, "note")
  .addEdge("note", "thinker")
  .addEdge("thinker", END)
  .compile();

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("helper", helper)
  .addNode("ask", () => ({
    messages: [
      new AIMessage({
        content: "",
        tool_calls: [{ id: crypto.randomUUID(), name: "ask_expert", args: { question: "Why is it so?" } }],
      }),
    ],
  }))
  .addNode("tools", new ToolNode([askExpert]))
  .addEdge(START, "helper")
  .addEdge("helper", "ask")
  .addEdge("ask", "tools")
  .addEdge("tools", END)
  .compile();
