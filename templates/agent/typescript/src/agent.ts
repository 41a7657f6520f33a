/** An agent with tools: the model calls them, is shown what they return, and goes on until it has an answer. */
import { SystemMessage } from "@langchain/core/messages";
import { END, MessagesValue, START, StateGraph, StateSchema, type Runtime } from "@langchain/langgraph";
import { ToolNode, toolsCondition } from "@langchain/langgraph/prebuilt";
import { z } from "zod";
import { model } from "./model.ts";
import { tools } from "./tools.ts";

const State = new StateSchema({ messages: MessagesValue });

/** What an assistant, or a run, may say otherwise. The console makes a form of it. */
const Context = z.object({
  instructions: z
    .string()
    .default("Answer the question; use the tools where they help.")
    .describe("What the model is told first"),
});

const modelWithTools = model.bindTools(tools);

const agent = async ({ messages }: typeof State.State, { context }: Runtime<z.input<typeof Context>>) => {
  const { instructions } = Context.parse(context ?? {});
  return { messages: [await modelWithTools.invoke([new SystemMessage(instructions), ...messages])] };
};

export const graph = new StateGraph(State, Context)
  .addNode("agent", agent)
  .addNode("tools", new ToolNode(tools))
  .addEdge(START, "agent")
  .addConditionalEdges("agent", toolsCondition, ["tools", END])
  .addEdge("tools", "agent")
  .compile();
