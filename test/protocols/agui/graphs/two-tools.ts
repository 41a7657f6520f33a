/**
 * Calls two tools at once: `look` ends, and `ask` asks. A question `gate …` then waits at its gate. Of a question
 * `stuck …`, `ask` does not ask, and never ends in the first attempt.
 */
import { AIMessage, ToolMessage } from "@langchain/core/messages";
import {
  Annotation,
  END,
  interrupt,
  MessagesAnnotation,
  START,
  StateGraph,
  type LangGraphRunnableConfig,
} from "@langchain/langgraph";
import { waitAtGate } from "../../../fixtures/gates.ts";

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  used: Annotation<string[]>({ reducer: (used, added) => [...used, ...added], default: () => [] }),
});

const resultOf = (name: string, content: string) => ({
  messages: [new ToolMessage({ content, tool_call_id: `call-${name}` })],
  used: [name],
});

export const graph = new StateGraph(State)
  .addNode("call", () => ({
    messages: [
      new AIMessage({
        content: "",
        tool_calls: ["ask", "look"].map((name) => ({
          id: `call-${name}`,
          name,
          args: {},
          type: "tool_call",
        })),
      }),
    ],
  }))
  .addNode("ask", async ({ messages }, config: LangGraphRunnableConfig) => {
    const { run_id, run_attempt } = config.configurable as { run_id: string; run_attempt: number };
    const label = messages.findLast(({ type }) => type === "human")?.text ?? "";
    if (label.startsWith("stuck")) {
      if (run_attempt === 1) await new Promise(() => setInterval(() => undefined, 60_000));
      return resultOf("ask", "not asked");
    }
    const answer = interrupt("Which one?") as string;
    if (label.startsWith("gate")) await waitAtGate(`${run_id}:${run_attempt}`, label, config.signal);
    return resultOf("ask", answer);
  })
  .addNode("look", () => resultOf("look", "seen"))
  .addNode("reply", ({ used }) => ({ messages: [new AIMessage(`used ${used.join(" and ")}`)] }))
  .addEdge(START, "call")
  .addEdge("call", "ask")
  .addEdge("call", "look")
  .addEdge(["ask", "look"], "reply")
  .addEdge("reply", END)
  .compile();
