/** In its first attempt the graph emits megabytes and exits in the same turn of the event loop, while they still wait for the pipe. */
import { Annotation, END, START, StateGraph, type LangGraphRunnableConfig } from "@langchain/langgraph";

const EVENTS = 16;
const CHARACTERS = 500_000;
/** Enough for the events to pass through LangGraph to the pipe; no timer fires and no socket is read meanwhile. */
const MICROTASKS = 10_000;

export const graph = new StateGraph(Annotation.Root({ done: Annotation<boolean>() }))
  .addNode("hurt", async (_state, { configurable, writer }: LangGraphRunnableConfig) => {
    const { run_attempt = 1 } = configurable as { run_attempt?: number };
    if (run_attempt > 1) return { done: true };
    for (let count = 0; count < EVENTS; count += 1) writer?.("x".repeat(CHARACTERS));
    for (let turn = 0; turn < MICROTASKS; turn += 1) await undefined;
    process.exit(0);
  })
  .addEdge(START, "hurt")
  .addEdge("hurt", END)
  .compile();
