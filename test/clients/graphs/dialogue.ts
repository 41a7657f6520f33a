/**
 * A turn with a question: the model writes, a person is asked, the model writes again. Custom events named `progress` report the progress.
 */
import { Annotation, END, interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { TokenModel } from "../../fixtures/tokens.ts";

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  tokens: Annotation<number>(),
  decision: Annotation<unknown>(),
});

export const graph = new StateGraph(State)
  .addNode("draft", async (state, config) => {
    config.writer?.({ name: "progress", step: "draft" });
    return { messages: [await new TokenModel(state.tokens ?? 5).invoke(state.messages, config)] };
  })
  .addNode("ask", (state) => ({ decision: interrupt({ question: "Go on?", after: state.messages.length }) }))
  .addNode("reply", async (state, config) => {
    config.writer?.({ name: "progress", step: "reply" });
    return { messages: [await new TokenModel(state.tokens ?? 5).invoke(state.messages, config)] };
  })
  .addEdge(START, "draft")
  .addEdge("draft", "ask")
  .addEdge("ask", "reply")
  .addEdge("reply", END)
  .compile();
