import { Annotation, END, START, StateGraph, type LangGraphRunnableConfig } from "@langchain/langgraph";

const PLACE = Symbol.for("threadloom.test.made-for");
const all = globalThis as { [PLACE]?: unknown[] };

/** The users for whom the factory made a graph, in order: shared by a test and the server that loads this module. */
export const madeFor: unknown[] = (all[PLACE] ??= []);

export const make = ({ configurable = {} }: LangGraphRunnableConfig) => {
  madeFor.push(configurable.langgraph_auth_user_id ?? null);
  return new StateGraph(Annotation.Root({ n: Annotation<number>() }))
    .addNode("count", ({ n = 0 }) => ({ n: n + 1 }))
    .addEdge(START, "count")
    .addEdge("count", END)
    .compile();
};
