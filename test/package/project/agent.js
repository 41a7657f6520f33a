/**
 * The graph of a project that installs the package, with the LangGraph of that project: it reports whether its input has its own classes.
 */
import { AIMessage, AIMessageChunk, HumanMessage } from "@langchain/core/messages";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { Annotation, interrupt, MessagesAnnotation, Send, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  kinds: Annotation({ reducer: (all, more) => all.concat(more), default: () => [] }),
});

const CLASSES = { human: HumanMessage, ai: AIMessage, "ai, streamed": AIMessageChunk };
/** Not with `instanceof`: newer versions of LangChain accept messages of other copies, too. */
const kindOf = (message) =>
  Object.entries(CLASSES).find(([, messageClass]) => message.constructor === messageClass)?.[0] ??
  `foreign ${message.constructor.name}`;

const model = new FakeListChatModel({ responses: ["six times seven is 42"] });
const inner = new StateGraph(State)
  .addNode("think", async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
  .addEdge(START, "think")
  .compile();

export const graph = new StateGraph(State)
  .addNode("inner", inner)
  .addNode("ask", ({ messages }) => {
    const answer = interrupt({ question: "go on?" });
    return { kinds: [...messages.map(kindOf), answer] };
  })
  .addNode("worker", ({ message }) => {
    const answer = interrupt({ question: "really?" });
    return { kinds: [kindOf(message), answer] };
  })
  .addEdge(START, "inner")
  .addEdge("inner", "ask")
  .addConditionalEdges("ask", ({ messages }) => [new Send("worker", { message: messages[1] })], ["worker"])
  .compile();
