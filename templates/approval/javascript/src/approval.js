/**
 * A person decides before something is done: the model writes an e-mail, the graph stops and shows it, and goes on with the
 * answer: send it, send it as edited, write another, or leave it. Questions and answers have the form that agent inboxes know.
 */
import { AIMessage, HumanMessage, SystemMessage } from "@langchain/core/messages";
import { Command, END, interrupt, MessagesValue, START, StateGraph, StateSchema } from "@langchain/langgraph";
import { z } from "zod";
import { model } from "./model.js";

const INSTRUCTIONS =
  "Write the e-mail that the user asks for, its text only. Mind what was said of the one before.";

const Email = z.object({ to: z.string(), subject: z.string(), body: z.string() });

const State = new StateSchema({
  messages: MessagesValue,
  email: Email.default({ to: "", subject: "", body: "" }),
});

/** What the person answers. */
const Decision = z.discriminatedUnion("type", [
  z.object({ type: z.literal("accept") }),
  z.object({ type: z.literal("edit"), args: z.object({ args: Email }) }),
  z.object({ type: z.literal("response"), args: z.string() }),
  z.object({ type: z.literal("ignore") }),
]);

const write = async ({ messages }) => {
  const answer = await model.invoke([new SystemMessage(INSTRUCTIONS), ...messages]);
  const asked = messages.filter(({ type }) => type === "human").map(({ text }) => text);
  const to = /[^\s<>]+@[^\s<>]+\w/.exec(asked.reverse().join("\n"))?.[0] ?? "customer@example.com";
  return { messages: [answer], email: { to, subject: "Your request", body: answer.text } };
};

const review = ({ email }) => {
  const question = {
    action_request: { action: "send_email", args: email },
    config: { allow_accept: true, allow_edit: true, allow_respond: true, allow_ignore: true },
    description: `An e-mail to ${email.to} is ready. Shall it be sent?`,
  };
  // When the run is resumed the node begins again, and `interrupt` returns the answer. What is no answer is asked again.
  const ask = () => Decision.safeParse([interrupt([question])].flat()[0]);
  let decision = ask();
  while (!decision.success) decision = ask();
  const { data } = decision;
  if (data.type === "accept") return new Command({ goto: "send" });
  if (data.type === "edit") return new Command({ update: { email: data.args.args }, goto: "send" });
  if (data.type === "response")
    return new Command({ update: { messages: [new HumanMessage(data.args)] }, goto: "write" });
  return new Command({ update: { messages: [new AIMessage("The e-mail was not sent.")] }, goto: END });
};

/** Sending stands in a node of its own: what is before an `interrupt` is done again. */
const send = ({ email }) => ({
  messages: [new AIMessage(`Sent to ${email.to}: ${email.body}`)], // the place for your mail service
});

export const graph = new StateGraph(State)
  .addNode("write", write)
  .addNode("review", review, { ends: ["send", "write", END] })
  .addNode("send", send)
  .addEdge(START, "write")
  .addEdge("write", "review")
  .addEdge("send", END)
  .compile();
