/**
 * Waits `milliseconds` (input), then notes when it ended: `ended_at`, in milliseconds of the machine's monotonic
 * clock, which all its processes share. What passes between that and a client's last byte is the server.
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
