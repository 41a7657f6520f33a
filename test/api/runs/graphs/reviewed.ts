/** A graph whose factory adds a review by a person only if the configuration names one. */
import { Annotation, END, interrupt, START, StateGraph } from "@langchain/langgraph";
import { factoryCalls } from "./calls.ts";

interface Config {
  configurable?: Record<string, unknown>;
  context?: unknown;
}
interface Runtime {
  accessContext: string;
  executionRuntime: unknown;
}

const State = Annotation.Root({
  draft: Annotation<string>(),
  answer: Annotation<string>(),
});
const Reviewed = Annotation.Root({ ...State.spec, reviewer: Annotation<string>() });

export const graph = ({ configurable = {}, context }: Config, runtime: Runtime | undefined) => {
  factoryCalls().push({
    configurable,
    context,
    accessContext: runtime?.accessContext,
    executionRuntime: runtime?.executionRuntime,
  });
  const { reviewer } = configurable as { reviewer?: string };
  if (reviewer === undefined) {
    return new StateGraph(State)
      .addNode("write", () => ({ draft: "A draft" }))
      .addEdge(START, "write")
      .addEdge("write", END)
      .compile();
  }
  return new StateGraph(Reviewed)
    .addNode("write", () => ({ draft: "A draft" }))
    .addNode("review", () => ({ answer: interrupt(`${reviewer}?`) as string, reviewer }))
    .addEdge(START, "write")
    .addEdge("write", "review")
    .addEdge("review", END)
    .compile();
};
