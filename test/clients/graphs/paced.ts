/** Sends `count` custom events `{name: "paced", index}`, one each `pauseMs`. */
import { setTimeout as pause } from "node:timers/promises";
import { Annotation, END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  count: Annotation<number>(),
  pauseMs: Annotation<number>(),
});

export const graph = new StateGraph(State)
  .addNode("emit", async (state, config) => {
    for (let index = 0; index < state.count; index += 1) {
      config.writer?.({ name: "paced", index });
      await pause(state.pauseMs, undefined, { signal: config.signal });
    }
    return {};
  })
  .addEdge(START, "emit")
  .addEdge("emit", END)
  .compile();
