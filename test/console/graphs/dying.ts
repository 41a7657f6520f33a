/** Streams an answer slowly; the first attempt of the first answer dies with its process in the middle. */
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { TypingModel } from "./typing.ts";

const TOKENS = 20;
const PER_SECOND = 20;
const DIES_AFTER_MS = 500;

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("model", async ({ messages }, config) => {
    const { run_attempt: attempt } = config.configurable as { run_attempt?: number };
    if (attempt === 1 && messages.length === 1)
      setTimeout(() => process.kill(process.pid, "SIGKILL"), DIES_AFTER_MS);
    return { messages: [await new TypingModel(TOKENS, PER_SECOND).invoke(messages, config)] };
  })
  .addEdge(START, "model")
  .addEdge("model", END)
  .compile();
