import { tool } from "@langchain/core/tools";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { z } from "zod";
import { ReportingModel } from "../../api/runs/traces/model.ts";

const add = tool(({ a, b }: { a: number; b: number }) => String(a + b), {
  name: "add",
  description: "Adds two numbers.",
  schema: z.object({ a: z.number(), b: z.number() }),
});
const model = new ReportingModel({ model: "calling", toolCalls: [{ name: "add", args: { a: 1, b: 2 } }] });

const calculator = new StateGraph(MessagesAnnotation)
  .addNode("think", async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
  .addNode("act", new ToolNode([add]))
  .addEdge(START, "think")
  .addEdge("think", "act")
  .addEdge("act", END)
  .compile({ name: "calculator" });

export const researcher = new StateGraph(MessagesAnnotation)
  .addNode("calculate", calculator)
  .addEdge(START, "calculate")
  .compile({ name: "researcher" });
