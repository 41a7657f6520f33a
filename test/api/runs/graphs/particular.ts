/** A graph whose factory makes none without the configuration of a run. */
import { Annotation, END, START, StateGraph, type LangGraphRunnableConfig } from "@langchain/langgraph";

const State = Annotation.Root({ text: Annotation<string>() });

export const graph = ({ configurable }: LangGraphRunnableConfig<{ language?: string }>) => {
  const language = configurable?.language;
  if (language === undefined) throw new Error("Which language?");
  return new StateGraph(State)
    .addNode("say", () => ({ text: language.toUpperCase() }))
    .addEdge(START, "say")
    .addEdge("say", END)
    .compile();
};
