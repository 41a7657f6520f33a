import { Annotation, END, START, StateGraph, type BaseStore } from "@langchain/langgraph";

const State = Annotation.Root({ user: Annotation<unknown>(), stored: Annotation<unknown>() });

/** A factory that records the user it receives, and reads the store while it makes the graph. */
export const graph = async (
  _config: unknown,
  { accessContext, user, store }: { accessContext: string; user: unknown; store: BaseStore },
) => {
  if (accessContext === "threads.create_run") await store.put(["made"], "for", { user });
  const item = await store.get(["made"], "for");
  return new StateGraph(State)
    .addNode("tell", () => ({ user, stored: item?.value }))
    .addEdge(START, "tell")
    .addEdge("tell", END)
    .compile();
};
