/** An agent with tools: the model calls them, is shown what they return, and goes on until it has an answer. */
import { SystemMessage } from "@langchain/core/messages";
import { END, MessagesValue, START, StateGraph, StateSchema } from "@langchain/langgraph";
import { ToolNode, toolsCondition } from "@langchain/langgraph/prebuilt";
import { model } from "./model.js";
import { tools } from "./tools.js";

const INSTRUCTIONS = "Answer the question; use the tools where they help.";

const State = new StateSchema({ messages: MessagesValue });

const modelWithTools = model.bindTools(tools);

const agent = async ({ messages }) => ({
  messages: [await modelWithTools.invoke([new SystemMessage(INSTRUCTIONS), ...messages])],
});

export const graph = new StateGraph(State)
  .addNode("agent", agent)
  .addNode("tools", new ToolNode(tools))
  .addEdge(START, "agent")
  .addConditionalEdges("agent", toolsCondition, ["tools", END])
  .addEdge("tools", "agent")
  .compile();
