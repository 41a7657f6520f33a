/** Uses `milliseconds` of CPU (input, default 20), in pieces of a millisecond between which other work has a turn. */
import { setImmediate as turn } from "node:timers/promises";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ milliseconds: Annotation<number>(), pid: Annotation<number>() });
const MICROSECONDS = 1_000;

const burnedMs = (since: NodeJS.CpuUsage): number => process.cpuUsage(since).user / MICROSECONDS;

export const graph = new StateGraph(State)
  .addNode("burn", async ({ milliseconds = 20 }) => {
    for (let piece = 0; piece < milliseconds; piece += 1) {
      const since = process.cpuUsage();
      while (burnedMs(since) < 1);
      await turn();
    }
    return { pid: process.pid };
  })
  .addEdge(START, "burn")
  .addEdge("burn", END)
  .compile();
