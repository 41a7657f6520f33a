import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ text: Annotation<string>() });

/** A factory whose error contains a user's text. */
export const graph = async (
  config: { configurable?: { secret?: string } },
  { accessContext }: { accessContext: string },
) => {
  if (accessContext === "threads.update")
    throw new RangeError(`No tenant for ${config.configurable?.secret ?? "a-canary-of-factories"}`);
  return new StateGraph(State)
    .addNode("tell", () => ({}))
    .addEdge(START, "tell")
    .addEdge("tell", END)
    .compile();
};
