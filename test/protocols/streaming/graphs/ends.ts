/** Graphs with subgraphs at all places. Each node adds its name to `items`. */
import { Annotation, interrupt, START, StateGraph, type LangGraphRunnableConfig } from "@langchain/langgraph";
import { waitAtGate } from "../../../fixtures/gates.ts";

const State = Annotation.Root({
  label: Annotation<string>({ reducer: (_before, given) => given, default: () => "" }),
  items: Annotation<string[]>({
    reducer: (before, added) => [...new Set([...before, ...added])],
    default: () => [],
  }),
});

type Work = (state: typeof State.State, config: LangGraphRunnableConfig) => Promise<object> | object;
const adds =
  (item: string): Work =>
  () => ({ items: [item] });
const asks: Work = () => ({ items: [String(interrupt("Sure?"))] });
const fails: Work = () => {
  throw new Error("out of luck");
};
const waits: Work = async ({ label }, { signal }) => {
  await waitAtGate(label, label, signal);
  return { items: ["waits"] };
};

/** A graph of one node. */
const one = (name: string, work: Work = adds(name)) =>
  new StateGraph(State).addNode(name, work).addEdge(START, name).compile();

const inner = one("inner");
const outer = () =>
  new StateGraph(State)
    .addNode("child", inner)
    .addNode("rest", adds("rest"))
    .addEdge(START, "child")
    .addEdge("child", "rest");

export const last = new StateGraph(State)
  .addNode("first", adds("first"))
  .addNode("child", inner)
  .addEdge(START, "first")
  .addEdge("first", "child")
  .compile();

export const nested = new StateGraph(State)
  .addNode("parent", outer().compile())
  .addNode("after", adds("after"))
  .addEdge(START, "parent")
  .addEdge("parent", "after")
  .compile();

export const stateless = new StateGraph(State)
  .addNode("parent", outer().compile({ checkpointer: false }))
  .addEdge(START, "parent")
  .compile();

const beside = (name: string, work: Work) =>
  new StateGraph(State)
    .addNode("quick", one("swift"))
    .addNode("slow", one(name, work))
    .addEdge(START, "quick")
    .addEdge(START, "slow")
    .compile();

export const parallel = beside("waits", waits);
export const asking = beside("asks", asks);

export const failing = new StateGraph(State)
  .addNode("child", inner)
  .addNode("bad", one("fails", fails))
  .addEdge(START, "child")
  .addEdge("child", "bad")
  .compile();

/** The first attempt never ends. */
const dies: Work = async (_state, { configurable }) => {
  if (configurable?.["run_attempt"] === 1) await new Promise<void>(() => undefined);
  return { items: ["dies"] };
};

export const dying = new StateGraph(State)
  .addNode("child", inner)
  .addNode("again", one("dies", dies))
  .addEdge(START, "child")
  .addEdge("child", "again")
  .compile();
