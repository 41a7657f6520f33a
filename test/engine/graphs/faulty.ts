/** Throws an exception that is not caught (`way`: from a timer, or as an error event), and keeps waiting. */
import { EventEmitter } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const FOR_EVER_MS = 600_000;

const State = Annotation.Root({ way: Annotation<"timer" | "event">() });

export const graph = new StateGraph(State)
  .addNode("let through", async ({ way }, config) => {
    setTimeout(() => {
      if (way === "timer") throw new Error("a timer's");
      new EventEmitter().emit("error", new Error("an event's"));
    });
    await pause(FOR_EVER_MS, undefined, { signal: config.signal });
    return {};
  })
  .addEdge(START, "let through")
  .addEdge("let through", END)
  .compile();
