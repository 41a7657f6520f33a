/** Asks a person with the kind of question that the last message names, and repeats the answer. */
import { AIMessage } from "@langchain/core/messages";
import { END, interrupt, MessagesValue, Send, START, StateGraph, StateSchema } from "@langchain/langgraph";
import { z } from "zod";

const State = new StateSchema({ messages: MessagesValue, place: z.string().default("") });

const TRANSFER = { action: "transfer", args: { to: "Ada", amount: 40 } };

const QUESTIONS: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  [
    "inbox",
    [
      {
        action_request: TRANSFER,
        config: { allow_accept: true, allow_edit: true, allow_respond: true, allow_ignore: true },
        description: "Send **40** to Ada?",
      },
    ],
  ],
  [
    "inbox without edit",
    {
      action_request: TRANSFER,
      config: { allow_accept: true, allow_edit: false, allow_respond: false, allow_ignore: false },
    },
  ],
  [
    "inbox of megabytes without edit",
    {
      action_request: {
        action: "transfer",
        args: { to: "a".repeat(300_000), places: Array.from({ length: 100_000 }, (_, place) => place) },
      },
      config: { allow_accept: true, allow_edit: false, allow_respond: false, allow_ignore: false },
    },
  ],
  [
    "inbox of megabytes",
    {
      action_request: {
        action: "transfer",
        args: { to: "a".repeat(300_000), places: Array.from({ length: 100_000 }, (_, place) => place) },
      },
      config: { allow_accept: true, allow_edit: true, allow_respond: false, allow_ignore: false },
    },
  ],
  [
    "middleware",
    {
      actionRequests: [
        { name: "send", args: { text: "Dear Ada" }, description: "A letter" },
        { name: "burn", args: { what: "a copy" } },
      ],
      reviewConfigs: [
        { actionName: "send", allowedDecisions: ["approve", "edit"] },
        { actionName: "burn", allowedDecisions: ["approve", "reject"] },
      ],
    },
  ],
  [
    "long",
    {
      action_request: { action: "transfer", args: { to: "Ada", why: "because\n".repeat(20), amount: 40 } },
      config: { allow_accept: true, allow_edit: true, allow_respond: true, allow_ignore: true },
      description: "A reason.\n\n".repeat(40),
    },
  ],
  ["free", { question: "Which colour?" }],
  ["options", { question: "Delete the table?", options: ["approve", false, { label: "Ask Ada", value: 7 }] }],
  [
    "many options",
    {
      question: "Which?",
      options: Array.from({ length: 1_000 }, (_, place) => `${place} ${"a".repeat(1_000)}`),
    },
  ],
  [
    "mail",
    {
      action_request: {
        action: "send_email",
        args: {
          to: "ada@example.com",
          subject: "Your refund",
          body: "Dear Ada,\n\nyour refund of 40 euros is on its way. It takes three days.\n\nKind regards",
          urgent: false,
          copies: 1,
          labels: { team: "support" },
        },
      },
      config: { allow_accept: true, allow_edit: true, allow_respond: true, allow_ignore: true },
      description: "An e-mail to **ada@example.com** is ready. Shall it be sent?",
    },
  ],
  ["draft", { question: "Send this draft?", draft: "Dear Ada, thank you." }],
  ["draft of megabytes", { question: "Send this draft?", draft: "A line of a draft.\n".repeat(60_000) }],
  ["draft with options", { prompt: "Send this draft?", text: "Dear Ada.", options: ["approve", "reject"] }],
  ["content", { instruction: "Review the text", content: "One.", pages: 3 }],
  ["call", { question: "Is this correct?", tool_call: { name: "burn", args: { what: "a copy" } } }],
  ["plain action", { action: "burn", args: { what: "a copy" }, message: "Burn it?" }],
  [
    "hostile names",
    { action: "burn", args: JSON.parse('{"__proto__": "a", "constructor": "b"}') as unknown },
  ],
  ["nothing", null],
  ["a list", [1, 2, 3]],
  ["no buttons", { question: "Which?", options: ["red", { colour: "blue" }] }],
]);

const said = (state: typeof State.State): string =>
  state.messages.findLast(({ type }) => type === "human")?.text ?? "";

export const graph = new StateGraph(State)
  .addNode("ask", (state) => {
    const answer: unknown = interrupt(QUESTIONS.get(said(state)) ?? said(state));
    return { messages: [new AIMessage(`Answered: ${JSON.stringify(answer)}`)] };
  })
  .addNode("twice", () => {
    const first: unknown = interrupt({ question: "Once?" });
    const second: unknown = interrupt({ question: "Twice?" });
    return { messages: [new AIMessage(`Answered: ${JSON.stringify([first, second])}`)] };
  })
  .addNode("here", ({ place }) => {
    const answer: unknown = interrupt(`What is in ${place}?`);
    return { messages: [new AIMessage(`In ${place}: ${JSON.stringify(answer)}`)] };
  })
  .addConditionalEdges(
    START,
    (state) =>
      said(state) === "two"
        ? ["Paris", "Rome"].map((place) => new Send("here", { place }))
        : said(state) === "twice"
          ? "twice"
          : "ask",
    ["ask", "here", "twice"],
  )
  .addEdge("twice", END)
  .addEdge("ask", END)
  .addEdge("here", END)
  .compile();
