/** Writes given words to each place that a graph can write; `words` has each under the name of its place. */
import { AIMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import type { LangGraphRunnableConfig } from "@langchain/langgraph";
import { Annotation, END, interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { z } from "zod";

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  words: Annotation<Record<string, string>>(),
  large: Annotation<string>(),
});

const FILLER = "a value that is kept apart, ".repeat(100);

/** The trace of the run has the argument and the result. */
const repeats = tool(async ({ said }: { said: string }) => said, {
  name: "repeats",
  description: "Answers what it is told.",
  schema: z.object({ said: z.string() }),
});

export const graph = new StateGraph(State)
  .addNode("say", async ({ words }, config: LangGraphRunnableConfig) => {
    config.writer?.({ custom: words.custom, header: config.configurable?.["x-canary"] as unknown });
    await config.store?.put(["whispers", "graph"], "item", { said: words.item });
    await repeats.invoke({ said: words.tool ?? "" });
    return { messages: [new AIMessage(words.message ?? "")], large: `${FILLER}${words.large}` };
  })
  .addNode("ask", ({ words }) => {
    const answer: unknown = interrupt({ question: words.interrupt });
    return { messages: [new AIMessage(`${words.answered} ${String(answer)}`)] };
  })
  .addNode("fail", ({ words }) => {
    throw new Error(`It fails: ${words.error}`);
  })
  .addEdge(START, "say")
  .addEdge("say", "ask")
  .addEdge("ask", "fail")
  .addEdge("fail", END)
  .compile();
