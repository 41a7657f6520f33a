/** One turn of a conversation. If the message is "report", a tool returns a megabyte that doesn't compress. */
import { randomBytes } from "node:crypto";
import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

const BYTES_OF_REPORT = 750_000; // a megabyte of base64

const wantsReport = ({ messages }: typeof MessagesAnnotation.State): boolean =>
  messages[messages.length - 1]?.content === "report";

export const graph = new StateGraph(MessagesAnnotation)
  .addNode("decide", (state) => ({
    messages: [
      new AIMessage({
        content: "",
        tool_calls: wantsReport(state)
          ? [{ id: `call-${state.messages.length}`, name: "report", args: {} }]
          : [],
      }),
    ],
  }))
  .addNode("report", (state) => ({
    messages: [
      new ToolMessage({
        content: randomBytes(BYTES_OF_REPORT).toString("base64"),
        tool_call_id: `call-${state.messages.length - 1}`,
      }),
    ],
  }))
  .addNode("answer", (state) => ({ messages: [new AIMessage(`answer ${state.messages.length}`)] }))
  .addEdge(START, "decide")
  .addConditionalEdges("decide", (state) =>
    (state.messages[state.messages.length - 1] as AIMessage).tool_calls?.length ? "report" : "answer",
  )
  .addEdge("report", "answer")
  .addEdge("answer", END)
  .compile();
