/**
 * Waits `milliseconds` (input), then sends one custom event with its process (`pid`) and its time (`sent_at`, in milliseconds of the
 * machine's monotonic clock, which all its processes share).
 */
import { hrtime, pid } from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ milliseconds: Annotation<number>() });

export const graph = new StateGraph(State)
  .addNode("announce", async (state, config) => {
    await pause(state.milliseconds);
    config.writer?.({ pid, sent_at: Number(hrtime.bigint()) / 1e6 });
    return {};
  })
  .addEdge(START, "announce")
  .addEdge("announce", END)
  .compile();
