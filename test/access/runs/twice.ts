import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({ attempt: Annotation<unknown>(), user: Annotation<unknown>() });

/** Takes its process with it in the first attempt, and tells in the second one whose run it is. */
export const graph = new StateGraph(State)
  .addNode("look", (_state, { configurable = {} }) => {
    if (configurable.run_attempt === 1) process.kill(process.pid, "SIGKILL");
    return { attempt: configurable.run_attempt, user: configurable.langgraph_auth_user_id };
  })
  .addEdge(START, "look")
  .addEdge("look", END)
  .compile();
