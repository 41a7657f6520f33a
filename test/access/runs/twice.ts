import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ attempt: Annotation<unknown>(), user: Annotation<unknown>() });

/** Kills its process in the first attempt, and returns the run's user in the second. */
export const graph = new StateGraph(State)
  .addNode("look", (_state, { configurable = {} }) => {
    if (configurable.run_attempt === 1) process.kill(process.pid, "SIGKILL");
    return { attempt: configurable.run_attempt, user: configurable.langgraph_auth_user_id };
  })
  .addEdge(START, "look")
  .addEdge("look", END)
  .compile();
