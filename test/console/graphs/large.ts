/** More nodes than a drawing can show. */
import { Annotation, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ text: Annotation<string>() });

const names = Array.from({ length: 400 }, (_, index) => `node_${index}`);

export const graph = new StateGraph(State)
  .addSequence(names.map((name): [string, () => object] => [name, () => ({})]))
  .addEdge(START, "node_0")
  .compile();
