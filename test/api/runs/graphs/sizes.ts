import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { waitAtGate } from "../../../fixtures/gates.ts";

/** Creates a too large value of the kind in its input, with `characters` of it. After an event it waits at `gate`, if any. */
const State = Annotation.Root({
  kind: Annotation<"value" | "list" | "items" | "event" | "error" | "small">,
  characters: Annotation<number>,
  made: Annotation<unknown>,
  gate: Annotation<string | undefined>,
});

export const graph = new StateGraph(State)
  .addNode("make", async ({ kind, characters, gate }, { writer, signal }) => {
    const text = "x".repeat(characters);
    switch (kind) {
      case "value":
        return { made: { text } };
      case "list":
        return { made: Array.from({ length: 10 }, () => text.slice(0, characters / 10)) };
      case "items":
        return { made: { items: Array.from({ length: characters }, () => 1) } };
      case "event":
        writer?.({ text });
        if (gate !== undefined) await waitAtGate(gate, gate, signal);
        return {};
      case "error":
        throw new Error(text);
      default:
        return { made: "small" };
    }
  })
  .addEdge(START, "make")
  .addEdge("make", END)
  .compile();
