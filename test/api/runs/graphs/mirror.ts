/** Returns its node's config: everything that a graph can read about its run. */
import { Annotation, END, START, StateGraph, type LangGraphRunnableConfig } from "@langchain/langgraph";

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? null));

const State = Annotation.Root({
  configurable: Annotation<unknown>(),
  context: Annotation<unknown>(),
  metadata: Annotation<unknown>(),
  tags: Annotation<unknown>(),
});

export const graph = new StateGraph(State)
  .addNode("look", (_, config: LangGraphRunnableConfig) => ({
    configurable: Object.fromEntries(
      Object.entries(config.configurable ?? {})
        .filter(([key]) => !key.startsWith("__pregel_"))
        .map(([key, value]) => [key, plain(value)]),
    ),
    context: plain(config.context),
    metadata: plain(config.metadata),
    tags: plain(config.tags),
  }))
  .addEdge(START, "look")
  .addEdge("look", END)
  .compile();
