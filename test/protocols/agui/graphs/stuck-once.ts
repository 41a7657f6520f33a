/** Answers with three tokens, then with two; the first attempt never ends after that. */
import {
  END,
  MessagesAnnotation,
  START,
  StateGraph,
  type LangGraphRunnableConfig,
} from "@langchain/langgraph";
import { TokenModel } from "../../../fixtures/tokens.ts";

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("first", async (state, config) => ({
    messages: [await new TokenModel(3).invoke(state.messages, config)],
  }))
  .addNode("second", async (state, config: LangGraphRunnableConfig) => {
    const messages = [await new TokenModel(2).invoke(state.messages, config)];
    const { run_attempt: attempt } = config.configurable as { run_attempt: number };
    if (attempt === 1) await new Promise(() => setInterval(() => undefined, 60_000));
    return { messages };
  })
  .addEdge(START, "first")
  .addEdge("first", "second")
  .addEdge("second", END)
  .compile();
