/** Messages in a delta channel: no checkpoint contains its value, LangGraph replays the writes. */
import { AIMessage } from "@langchain/core/messages";
import { END, MessagesDeltaValue, START, StateGraph, StateSchema } from "@langchain/langgraph";

const State = new StateSchema({ messages: MessagesDeltaValue });

export const graph = new StateGraph(State)
  .addNode("answer", () => ({ messages: [new AIMessage("answer")] }))
  .addEdge(START, "answer")
  .addEdge("answer", END)
  .compile();
