/**
 * A graph with a subgraph: in the inner one a model repeats its input, 10 ms a token, and in the outer one another model streams 3 tokens.
 * SDKs begin to read an inner graph when it is announced, so it must not be over by then.
 */
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { OfflineModel } from "../../../graphs/offline-model.ts";
import { TokenModel } from "../../fixtures/tokens.ts";

const child = new StateGraph(MessagesAnnotation)
  .addNode("inner", async (state, config) => ({
    messages: [await new OfflineModel().invoke(state.messages, config)],
  }))
  .addEdge(START, "inner")
  .addEdge("inner", END)
  .compile();

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("child", child)
  .addNode("outer", async (state, config) => ({
    messages: [await new TokenModel(3).invoke(state.messages, config)],
  }))
  .addEdge(START, "child")
  .addEdge("child", "outer")
  .addEdge("outer", END)
  .compile();
