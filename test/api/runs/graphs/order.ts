/** Says in which order its node gets what a user has said. */
import {
  Annotation,
  END,
  interrupt,
  START,
  StateGraph,
  type BaseCheckpointSaver,
  type BaseStore,
  type LangGraphRunnableConfig,
} from "@langchain/langgraph";

const State = Annotation.Root({
  item: Annotation<Record<string, unknown> | undefined>(),
  filter: Annotation<Record<string, unknown> | undefined>(),
  question: Annotation<unknown>(),
  answer: Annotation<unknown>(),
  seen: Annotation<string>(),
});

const NAMESPACE = ["order"];
/** The keys of `configurable` that the tests give; the others are LangGraph's and the server's. */
const OWN = ["shape", "zeal", "any", "extra"];

export const buildOrder = (given: { checkpointer?: BaseCheckpointSaver; store?: BaseStore } = {}) =>
  new StateGraph(State)
    .addNode("look", async ({ item, filter, question }, config: LangGraphRunnableConfig) => {
      const answer: unknown = question === undefined ? undefined : interrupt(question);
      const own = Object.entries(config.configurable ?? {}).filter(([key]) => OWN.includes(key));
      const stored: unknown[] = [];
      if (item !== undefined) {
        await config.store?.put(NAMESPACE, "one", item);
        stored.push((await config.store?.get(NAMESPACE, "one"))?.value);
        stored.push((await config.store?.search(NAMESPACE, { filter }))?.[0]?.value);
      }
      const seen = [config.context, Object.fromEntries(own), stored];
      return { answer, seen: JSON.stringify(seen) };
    })
    .addEdge(START, "look")
    .addEdge("look", END)
    .compile(given);

export const graph = buildOrder();
