/** Calls the function that a test stored at `Symbol.for("threadloom.test.gate")` when the edge after its node is decided. */
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ text: Annotation<string>(), notes: Annotation<string>() });

export const graph = new StateGraph(State)
  .addNode("write", ({ text }) => ({ text }))
  .addEdge(START, "write")
  .addConditionalEdges("write", async () => {
    await (globalThis as Record<symbol, unknown> as Record<symbol, (() => Promise<void>) | undefined>)[
      Symbol.for("threadloom.test.gate")
    ]?.();
    return END;
  })
  .compile();
