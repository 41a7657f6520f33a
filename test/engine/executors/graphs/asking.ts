/**
 * Two tasks ask at the same time. One asks twice, and tells its process. The other is busy with its answer during the
 * first attempt.
 */
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
  answers: Annotation<unknown[]>({ reducer: (all, added) => [...all, ...added], default: () => [] }),
});

export const graph = new StateGraph(State)
  .addNode("twice", () => {
    const first: unknown = interrupt({ question: "first" });
    return { answers: [first, interrupt({ question: "second", pid: process.pid })] };
  })
  .addNode("busy", async (_, { signal, configurable }: LangGraphRunnableConfig) => {
    const answer: unknown = interrupt({ question: "busy" });
    if (configurable?.["run_attempt"] === 1) await pause(FOR_EVER_MS, undefined, { signal });
    return { answers: [answer] };
  })
  .addEdge(START, "twice")
  .addEdge(START, "busy")
  .addEdge("twice", END)
  .addEdge("busy", END)
  .compile();
