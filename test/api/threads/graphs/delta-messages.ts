/** Messages in a delta channel: its value is in no checkpoint, LangGraph replays what was written. */
import { AIMessage } from "@langchain/core/messages";
import { END, MessagesDeltaValue, START, StateGraph, StateSchema } from "@langchain/langgraph";

const State = new StateSchema({ messages: MessagesDeltaValue });

export const graph = new StateGraph(State)
  .addNode("answer", () => ({ messages: [new AIMessage("answer")] }))
  .addEdge(START, "answer")
  .addEdge("answer", END)
  .compile();
