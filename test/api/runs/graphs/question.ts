/** Raises an interrupt. The answer `slow` makes the graph work forever; it stores any other in `answers`. */
import { setTimeout as pause } from "node:timers/promises";
import {
  Annotation,
  END,
  interrupt,
  START,
  StateGraph,
  type LangGraphRunnableConfig,
} from "@langchain/langgraph";

const FOR_EVER_MS = 600_000;

const State = Annotation.Root({
  answers: Annotation<string[]>({ reducer: (all, added) => [...all, ...added], default: () => [] }),
});

export const graph = new StateGraph(State)
  .addNode("ask", async (_, config: LangGraphRunnableConfig) => {
    const answer = interrupt("How?") as string;
    if (answer === "slow") {
      config.writer?.({ working: true });
      await pause(FOR_EVER_MS, undefined, { signal: config.signal });
    }
    return { answers: [answer] };
  })
  .addNode("work", async ({ answers }, config: LangGraphRunnableConfig) => {
    config.writer?.({ working: true });
    if (answers.at(-1) === "slow later") await pause(FOR_EVER_MS, undefined, { signal: config.signal });
    return {};
  })
  .addEdge(START, "ask")
  .addEdge("ask", "work")
  .addEdge("work", END)
  .compile();
