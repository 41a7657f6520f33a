/** Each step adds a report of a quarter of a megabyte, with its digest. */
import { createHash, randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { Annotation, END, StateGraph } from "@langchain/langgraph";

const BYTES = 190_000; // a quarter of a megabyte of base64
const STEP_MS = 150;

export interface Report {
  text: string;
  digest: string;
}

const State = Annotation.Root({
  steps: Annotation<number>(),
  reports: Annotation<Report[]>({ reducer: (before, after) => before.concat(after), default: () => [] }),
});

export const graph = new StateGraph(State)
  .addNode("report", async () => {
    await pause(STEP_MS);
    const text = randomBytes(BYTES).toString("base64");
    return { reports: [{ text, digest: createHash("sha256").update(text).digest("hex") }] };
  })
  .addEdge("__start__", "report")
  .addConditionalEdges("report", ({ steps, reports }) => (reports.length < steps ? "report" : END))
  .compile();
