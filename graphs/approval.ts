/**
 * A person has the last word: the graph writes a draft, stops with an interrupt that shows it, and goes on
 * when the run is resumed with a decision: `{"decision": "approve" | "reject"}` or
 * `{"decision": "edit", "text": "…"}`. A bare `true` or `false` approves or rejects, and so does an option of the question;
 * any other bare text is an edit.
 */
import { AIMessage } from "@langchain/core/messages";
import { Command, END, interrupt, MessagesValue, START, StateGraph, StateSchema } from "@langchain/langgraph";
import { z } from "zod";

const State = new StateSchema({
  messages: MessagesValue,
  draft: z.string().default(""),
  status: z.enum(["drafted", "sent", "rejected"]).default("drafted"),
});

const OPTIONS = ["approve", "reject"];

const Decision = z.preprocess(
  (answer) => {
    if (typeof answer === "boolean") return { decision: answer ? "approve" : "reject" };
    if (typeof answer !== "string") return answer;
    return OPTIONS.includes(answer) ? { decision: answer } : { decision: "edit", text: answer };
  },
  z.discriminatedUnion("decision", [
    z.object({ decision: z.literal("approve") }),
    z.object({ decision: z.literal("reject"), reason: z.string().optional() }),
    z.object({ decision: z.literal("edit"), text: z.string() }),
  ]),
);

function write(state: typeof State.State) {
  const request = state.messages.findLast(({ type }) => type === "human")?.text ?? "nothing";
  return {
    draft: `Dear customer, about your request "${request}": we take care of it.`,
    status: "drafted" as const,
  };
}

/**
 * The node starts again from its first line when the run is resumed; `interrupt` then returns the answer.
 * An answer that is no decision makes it ask again.
 */
function review(state: typeof State.State) {
  const question = {
    question: "Send this draft?",
    draft: state.draft,
    options: OPTIONS,
  };
  let parsed = Decision.safeParse(interrupt(question));
  while (!parsed.success) parsed = Decision.safeParse(interrupt({ ...question, problem: "Not a decision." }));
  const answer = parsed.data;
  if (answer.decision === "reject") {
    return new Command({ update: { status: "rejected" as const }, goto: "discard" });
  }
  return new Command({ update: answer.decision === "edit" ? { draft: answer.text } : {}, goto: "send" });
}

const send = (state: typeof State.State) => ({
  messages: [new AIMessage(`Sent: ${state.draft}`)],
  status: "sent" as const,
});

const discard = () => ({ messages: [new AIMessage("The draft was rejected; nothing was sent.")] });

export const graph = new StateGraph(State)
  .addNode("write", write)
  .addNode("review", review, { ends: ["send", "discard"] })
  .addNode("send", send)
  .addNode("discard", discard)
  .addEdge(START, "write")
  .addEdge("write", "review")
  .addEdge("send", END)
  .addEdge("discard", END)
  .compile();
