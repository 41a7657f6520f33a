import { appendFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { ReportingModel } from "../../api/runs/traces/model.ts";

const State = Annotation.Root({ steps: Annotation<number>() });
const model = new ReportingModel({ model: "reporting" });

/** Writes a line for each call that has ended, with its time, into the file REPORTED_CALLS. */
const call = async (_state: unknown, config: { configurable?: Record<string, unknown> }) => {
  await model.invoke("hello");
  const { run_id, run_attempt } = config.configurable ?? {};
  const line = { run_id, attempt: run_attempt, pid: process.pid, at: Date.now() };
  appendFileSync(process.env["REPORTED_CALLS"] ?? "", `${JSON.stringify(line)}\n`);
  await delay(50 + Math.random() * 100);
  return {};
};

export const graph = new StateGraph(State)
  .addNode("first", call)
  .addNode("second", call)
  .addNode("third", call)
  .addEdge(START, "first")
  .addEdge("first", "second")
  .addEdge("second", "third")
  .compile();
