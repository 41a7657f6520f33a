/**
 * Waits `milliseconds` (input), then records its end: `ended_at`, in milliseconds of the machine's monotonic clock, which all its processes
 * share. The time from then to a client's last byte is the server's.
 */
import { hrtime } from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ milliseconds: Annotation<number>(), ended_at: Annotation<number>() });

export const graph = new StateGraph(State)
  .addNode("work", async (state) => {
    await pause(state.milliseconds);
    return { ended_at: Number(hrtime.bigint()) / 1e6 };
  })
  .addEdge(START, "work")
  .addEdge("work", END)
  .compile();
