/** Answers with three tokens, waits at the gate of its question, and answers again. */
import {
  END,
  MessagesAnnotation,
  START,
  StateGraph,
  type LangGraphRunnableConfig,
} from "@langchain/langgraph";
import { waitAtGate } from "../../../fixtures/gates.ts";
import { TokenModel } from "../../../fixtures/tokens.ts";

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("first", async (state, config) => ({
    messages: [await new TokenModel(3).invoke(state.messages, config)],
  }))
  .addNode("wait", async (state, config: LangGraphRunnableConfig) => {
    const { run_id, run_attempt } = config.configurable as { run_id: string; run_attempt: number };
    const label = state.messages.findLast(({ type }) => type === "human")?.text ?? "";
    await waitAtGate(`${run_id}:${run_attempt}`, label, config.signal);
    return {};
  })
  .addNode("second", async (state, config) => ({
    messages: [await new TokenModel(2).invoke(state.messages, config)],
  }))
  .addEdge(START, "first")
  .addEdge("first", "wait")
  .addEdge("wait", "second")
  .addEdge("second", END)
  .compile();
