import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { Annotation, interrupt, START, StateGraph, type BaseCheckpointSaver } from "@langchain/langgraph";
import { waitAtGate } from "../../../fixtures/gates.ts";

const Input = Annotation.Root({ question: Annotation<string> });
const Output = Annotation.Root({ answer: Annotation<string>, mood: Annotation<string> });
const State = Annotation.Root({
  ...Input.spec,
  ...Output.spec,
  token: Annotation<string>,
  thoughts: Annotation<BaseMessage[]>,
});

/** Keeps two channels to itself. The question says how it ends. */
export const build = (checkpointer?: BaseCheckpointSaver) =>
  new StateGraph({ stateSchema: State, input: Input, output: Output })
    .addNode("think", ({ question }) => ({
      mood: "calm",
      token: "a secret token",
      thoughts: [new AIMessage({ id: `thought-${question}`, content: "a secret thought" })],
    }))
    .addNode("reply", async ({ question }, { configurable, signal }) => {
      if (question === "fail") throw new Error("no answer");
      if (question.startsWith("wait "))
        await waitAtGate(String(configurable?.["thread_id"]), question, signal);
      const said = question === "ask" ? (interrupt("Which answer?") as string) : "bye";
      return { answer: said };
    })
    .addEdge(START, "think")
    .addEdge("think", "reply")
    .compile({ ...(checkpointer === undefined ? {} : { checkpointer }) });

export const graph = build();
export const factory = () => build();
