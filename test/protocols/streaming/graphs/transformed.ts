/** A graph compiled with transformers: one emits the nodes that have returned, and hides tasks from clients. */
import { Annotation, START, StateGraph, StreamChannel, type StreamTransformer } from "@langchain/langgraph";

const State = Annotation.Root({ text: Annotation<string>() });

const activity = (): StreamTransformer<object> => {
  const nodes: string[] = [];
  const steps = StreamChannel.remote<{ node: string }>("steps");
  let resolve: (value: unknown) => void = () => undefined;
  const summary = new Promise((resolved) => (resolve = resolved));
  return {
    init: () => ({ steps, local: StreamChannel.local(), summary, never: new Promise(() => undefined) }),
    process({ method, params: { node } }) {
      if (method === "updates" && node !== undefined) {
        nodes.push(node);
        steps.push({ node });
      }
      return method !== "tasks";
    },
    finalize: () => resolve({ nodes }),
  };
};

const compiled = new StateGraph(State)
  .addNode("first", () => ({ text: "one" }))
  .addNode("second", () => ({ text: "two" }))
  .addEdge(START, "first")
  .addEdge("first", "second");

export const graph = compiled.compile({ transformers: [activity] });
