/** Ends as `way` says: with an error of many characters, a thrown text, or a value that contains itself. */
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  way: Annotation<number | "text" | "nothing" | "cycle">(),
  value: Annotation<unknown>(),
});

const throwAnything = (thrown: unknown): never => {
  throw thrown;
};

export const graph = new StateGraph(State)
  .addNode("end", ({ way }) => {
    if (typeof way === "number") throw new Error("e".repeat(way));
    if (way === "text") throwAnything("only a text, isn't it?");
    if (way === "nothing") throwAnything(undefined);
    const value: Record<string, unknown> = { name: "self" };
    value["own"] = value;
    value["others"] = [value];
    return { value };
  })
  .addEdge(START, "end")
  .addEdge("end", END)
  .compile();
