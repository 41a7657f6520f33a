import { Annotation, END, START, StateGraph, type LangGraphRunnableConfig } from "@langchain/langgraph";

const PLACE = Symbol.for("threadloom.test.made-for");
const all = globalThis as { [PLACE]?: unknown[] };

/** For whom the graph was made, each time: shared by a test and the server that loads this. */
export const madeFor: unknown[] = (all[PLACE] ??= []);

export const make = ({ configurable = {} }: LangGraphRunnableConfig) => {
  madeFor.push(configurable.langgraph_auth_user_id ?? null);
  return new StateGraph(Annotation.Root({ n: Annotation<number>() }))
    .addNode("count", ({ n = 0 }) => ({ n: n + 1 }))
    .addEdge(START, "count")
    .addEdge("count", END)
    .compile();
};
