/** Graphs that ask several questions at the same time. */
import { setTimeout as pause } from "node:timers/promises";
import {
  Annotation,
  END,
  entrypoint,
  interrupt,
  Send,
  START,
  StateGraph,
  task,
  type BaseCheckpointSaver,
  type LangGraphRunnableConfig,
} from "@langchain/langgraph";

const FOR_EVER_MS = 600_000;

const State = Annotation.Root({
  items: Annotation<string[]>(),
  item: Annotation<string>({ reducer: (_, item) => item, default: () => "" }),
  got: Annotation<string[]>({ reducer: (all, added) => [...all, ...added], default: () => [] }),
});
type Asked = typeof State.State;

const answerTo = (question: string): string => String(interrupt(question));
/** The answer `stay` keeps the node busy until its run is stopped. */
const ask = async ({ item }: Asked, { signal }: LangGraphRunnableConfig) => {
  const answer = answerTo(item);
  if (answer === "stay") await pause(FOR_EVER_MS, undefined, { signal });
  return { got: [answer] };
};
const askTwice = ({ item }: Asked) => ({ got: [answerTo(`${item} 1`), answerTo(`${item} 2`)] });
/** Its task ends without a write. */
const askSilently = ({ item }: Asked) => {
  answerTo(item);
  return {};
};

type Node = (state: Asked, config: LangGraphRunnableConfig) => Partial<Asked> | Promise<Partial<Asked>>;
const forEach = (node: Node | typeof inTurn) => (checkpointer?: BaseCheckpointSaver) =>
  new StateGraph(State)
    .addNode("ask", node)
    .addConditionalEdges(START, ({ items }) => items.map((item) => new Send("ask", { item })), ["ask"])
    .compile({ ...(checkpointer && { checkpointer }) });

const inTurn = new StateGraph(State)
  .addNode("first", ({ item }) => ({ got: [answerTo(`${item} 1`)] }))
  .addNode("second", ({ item }) => ({ got: [answerTo(`${item} 2`)] }))
  .addEdge(START, "first")
  .addEdge("first", "second")
  .addEdge("second", END)
  .compile();
const atOnce = new StateGraph(State)
  .addNode("first", ({ item }) => ({ got: [answerTo(`${item} 1`)] }))
  .addNode("second", ({ item }) => ({ got: [answerTo(`${item} 2`)] }))
  .addEdge(START, "first")
  .addEdge(START, "second")
  .compile();
/** LangGraph calls this subgraph from a node. */
const callAtOnce = async ({ item }: Asked, config: LangGraphRunnableConfig) => ({
  got: (await atOnce.invoke({ item }, config)).got,
});

const question = task("question", (text: string) => Promise.resolve(answerTo(text)));

export const BUILDERS = {
  nodes: (checkpointer?: BaseCheckpointSaver) =>
    new StateGraph(State)
      .addNode("a", () => ({ got: [answerTo("a")] }))
      .addNode("b", () => ({ got: [answerTo("b")] }))
      .addNode("plain", () => ({ got: ["plain"] }))
      .addNode("join", ({ got }) => ({ item: got.toSorted().join() }))
      .addEdge(START, "a")
      .addEdge(START, "b")
      .addEdge(START, "plain")
      .addEdge(["a", "b", "plain"], "join")
      .addEdge("join", END)
      .compile({ ...(checkpointer && { checkpointer }) }),
  sends: forEach(ask),
  twice: forEach(askTwice),
  silent: forEach(askSilently),
  subgraphs: forEach(inTurn),
  nested: forEach(callAtOnce),
  functional: (checkpointer?: BaseCheckpointSaver) =>
    entrypoint({ name: "functional", ...(checkpointer && { checkpointer }) }, async ({ items }: Asked) => ({
      got: await Promise.all(items.map((item) => question(item))),
    })),
} as const;

export type Kind = keyof typeof BUILDERS;

export const nodes = BUILDERS.nodes();
export const sends = BUILDERS.sends();
export const twice = BUILDERS.twice();
export const silent = BUILDERS.silent();
export const subgraphs = BUILDERS.subgraphs();
export const nested = BUILDERS.nested();
export const functional = BUILDERS.functional();
