import { existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { tool } from "@langchain/core/tools";
import { Annotation, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { trace } from "@opentelemetry/api";
import { z } from "zod";
import { ReportingModel } from "../../api/runs/traces/model.ts";

const model = new ReportingModel({ model: "plain" });
const tracer = trace.getTracer("a graph");
const work = tool(
  async ({ secret }: { secret: string }) =>
    await tracer.startActiveSpan("work in a tool", async (span) => {
      await delay(1);
      span.end();
      return `done: ${secret}`;
    }),
  { name: "work", description: "Works.", schema: z.object({ secret: z.string() }) },
);

const inner = new StateGraph(MessagesAnnotation)
  .addNode("ask", async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
  .addEdge(START, "ask")
  .compile();

/** Begins spans of its own after awaiting something, as libraries do. */
export const agent = new StateGraph(MessagesAnnotation)
  .addNode("plan", async () => {
    await delay(1);
    tracer.startSpan("work in a node").end();
    // eslint-disable-next-line no-console
    console.log("a line of the graph");
    await work.invoke({ secret: "hunter2" });
    return {};
  })
  .addNode("inner", inner)
  .addEdge(START, "plan")
  .addEdge("plan", "inner")
  .compile();

export const failing = new StateGraph(MessagesAnnotation)
  .addNode("fail", () => {
    throw new RangeError("hunter2");
  })
  .addEdge(START, "fail")
  .compile();

/** Waits for the file GATE. */
export const held = new StateGraph(Annotation.Root({ done: Annotation<boolean>() }))
  .addNode("wait", async () => {
    while (!existsSync(process.env["GATE"] ?? "")) await delay(20);
    return { done: true };
  })
  .addEdge(START, "wait")
  .compile();
