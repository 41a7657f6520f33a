/** Its reducer and its conditional edge throw for some values. */
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  count: Annotation<number>({
    reducer: (sum, added) => {
      if (typeof added !== "number") throw new TypeError("Only numbers can be counted.");
      return sum + added;
    },
    default: () => 0,
  }),
});

export const graph = new StateGraph(State)
  .addNode("tick", () => ({ count: 1 }))
  .addEdge(START, "tick")
  .addConditionalEdges("tick", ({ count }) => {
    if (count > 100) throw new RangeError("That is too much.\n    at a secret place");
    return END;
  })
  .compile();
