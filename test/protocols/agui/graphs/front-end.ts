/** Says what the front end gave it: tools, context, changed state and earlier messages. */
import { AIMessage } from "@langchain/core/messages";
import { Annotation, END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

interface CopilotKit {
  actions?: { function: { name: string } }[];
  context?: { description: string; value: string }[];
}

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  copilotkit: Annotation<CopilotKit>(),
  seen: Annotation<string[]>({ reducer: (before, added) => [...before, ...added], default: () => [] }),
});

export const graph = new StateGraph(State)
  .addNode("look", ({ messages, copilotkit, seen }) => {
    const actions = copilotkit?.actions?.map(({ function: { name } }) => name) ?? [];
    const context = copilotkit?.context?.map(({ description, value }) => `${description}: ${value}`) ?? [];
    return {
      seen: [`turn ${seen.length + 1}`],
      messages: [
        new AIMessage(
          JSON.stringify({ actions, context, given: messages.map(({ type, content }) => [type, content]) }),
        ),
      ],
    };
  })
  .addEdge(START, "look")
  .addEdge("look", END)
  .compile();
