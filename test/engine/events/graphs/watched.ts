/** Nodes that return several messages without ids: in a list, in a subgraph, as tool answers, and in a channel without a reducer. */
import { AIMessage, HumanMessage, ToolMessage, type BaseMessage } from "@langchain/core/messages";
import { Annotation, END, MessagesAnnotation, Send, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  last: Annotation<BaseMessage>(),
  appended: Annotation<BaseMessage[]>({
    reducer: (before, added) => before.concat(added),
    default: () => [],
  }),
});

const inner = new StateGraph(State)
  .addNode("inside", () => ({ messages: [new AIMessage("inside 1"), new AIMessage("inside 2")] }))
  .addEdge(START, "inside")
  .addEdge("inside", END)
  .compile();

const called: string[] = [];

/** Number of calls of the graph's own callback for the graph itself, by run. */
export const callsOf = (runId: string): number => called.filter((id) => id === runId).length;

export const graph = new StateGraph(State)
  .addNode("several", () => ({
    messages: [new AIMessage("one"), new AIMessage("two"), new HumanMessage("three")],
    appended: [new AIMessage("first"), new AIMessage("second")],
    last: new AIMessage("alone"),
  }))
  .addNode("tools", () => ({
    messages: [
      new ToolMessage({ content: "a", tool_call_id: "call" }),
      new ToolMessage({ content: "b", tool_call_id: "call" }),
    ],
  }))
  .addNode("sent", () => ({ messages: [new AIMessage("sent 1"), new AIMessage("sent 2")] }))
  .addNode("around", inner)
  .addNode("pairs", () => ({ messages: [["ai", "a pair"] as never, new AIMessage("the end")] }))
  .addEdge(START, "several")
  .addEdge("several", "tools")
  .addConditionalEdges("tools", () => [new Send("sent", {}), new Send("sent", {})], ["sent"])
  .addEdge("sent", "around")
  .addEdge("around", "pairs")
  .addEdge("pairs", END)
  .compile()
  .withConfig({
    callbacks: [{ handleChainStart: (_chain, _inputs, runId) => void called.push(runId) }],
  });
