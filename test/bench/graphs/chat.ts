/** One turn of a conversation: the answer to any message has a hundred characters. */
import { AIMessage } from "@langchain/core/messages";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

const ANSWER_CHARACTERS = 100;

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("answer", (state) => ({
    messages: [new AIMessage(`answer ${state.messages.length} `.padEnd(ANSWER_CHARACTERS, "."))],
  }))
  .addEdge(START, "answer")
  .addEdge("answer", END)
  .compile();
