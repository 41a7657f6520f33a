/**
 * A step reports its process and its start. After `steps` pauses of 50 ms, another one does `harm` to the process, in the first `attempts`
 * attempts (all if left out).
 */
import { setTimeout as pause } from "node:timers/promises";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { HARMS, type Harm } from "../../../fixtures/harms.ts";

const State = Annotation.Root({
  harm: Annotation<Harm | undefined>(),
  attempts: Annotation<number>(),
  steps: Annotation<number>(),
  done: Annotation<number>({ reducer: (a, b) => a + b, default: () => 0 }),
  pid: Annotation<number>(),
  born: Annotation<number>(),
});

export const graph = new StateGraph(State)
  .addNode("begin", () => ({ pid: process.pid, born: performance.timeOrigin }))
  .addNode("work", async () => {
    await pause(50);
    return { done: 1 };
  })
  .addNode("hurt", async ({ harm, attempts = Infinity }, { configurable }) => {
    const { run_attempt = 1 } = configurable as { run_attempt?: number };
    if (harm !== undefined && run_attempt <= attempts) await HARMS[harm]();
    return {};
  })
  .addEdge(START, "begin")
  .addConditionalEdges("begin", ({ steps = 0 }) => (steps > 0 ? "work" : "hurt"), ["work", "hurt"])
  .addConditionalEdges("work", ({ steps, done }) => (done < steps ? "work" : "hurt"), ["work", "hurt"])
  .addEdge("hurt", END)
  .compile();
