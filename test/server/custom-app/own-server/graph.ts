/** Creates a thread through the API of the server that executes it. */
import { Client } from "@langchain/langgraph-sdk";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const early = new Client({ callerOptions: { maxRetries: 0 } });

export const graph = new StateGraph(Annotation.Root({ made: Annotation<string[]>() }))
  .addNode("make", async () => {
    const late = new Client({ callerOptions: { maxRetries: 0 } });
    const threads = [await early.threads.create(), await late.threads.create()];
    return { made: threads.map(({ thread_id }) => thread_id) };
  })
  .addEdge(START, "make")
  .addEdge("make", END)
  .compile();
