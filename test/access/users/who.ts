import { Annotation, END, START, StateGraph, type LangGraphRunnableConfig } from "@langchain/langgraph";

const State = Annotation.Root({ seen: Annotation<unknown>(), child: Annotation<unknown>() });

const seenIn = ({ configurable = {}, context }: LangGraphRunnableConfig): unknown => ({
  user: configurable.langgraph_auth_user ?? null,
  id: configurable.langgraph_auth_user_id ?? null,
  permissions: configurable.langgraph_auth_permissions ?? null,
  context: context ?? null,
});

const child = new StateGraph(State)
  .addNode("look", (_state, config) => ({ child: seenIn(config) }))
  .addEdge(START, "look")
  .addEdge("look", END)
  .compile();

/** A graph with a subgraph; both return the user that they receive. */
export const graph = new StateGraph(State)
  .addNode("look", (_state, config) => ({ seen: seenIn(config) }))
  .addNode("within", child)
  .addEdge(START, "look")
  .addEdge("look", "within")
  .addEdge("within", END);
