/**
 * Work in parallel: the topic becomes questions, a subgraph looks into each of them at the same time (`Send`), and their findings
 * become one report.
 */
import { SystemMessage } from "@langchain/core/messages";
import {
  END,
  MessagesValue,
  Overwrite,
  ReducedValue,
  Send,
  START,
  StateGraph,
  StateSchema,
} from "@langchain/langgraph";
import { z } from "zod";
import { model } from "./model.js";
import { search } from "./search.js";

const PLAN = "Split the topic into three questions, one a line, and write nothing else.";
const ANSWER = "Answer the question in one sentence, from these sources:";
const REPORT = "Write a report of these findings:";

const QUESTIONS_AT_MOST = 5;

const Finding = z.object({ question: z.string(), answer: z.string() });

/** Branches write it at the same time: the reducer says how what they write comes together. */
const findings = new ReducedValue(z.array(Finding).default([]), {
  inputSchema: z.array(Finding),
  reducer: (known, added) => [...known, ...added],
});

const Investigation = new StateSchema({
  question: z.string(),
  sources: z.array(z.string()).default([]),
  findings,
});

/** The subgraph: one question. */
const investigate = new StateGraph(Investigation)
  .addNode("search", async ({ question }) => ({ sources: await search(question) }))
  .addNode("read", async ({ question, sources }) => {
    const instructions = new SystemMessage(`${ANSWER}\n${sources.join("\n")}`);
    const answer = await model.invoke([instructions, { role: "user", content: question }]);
    return { findings: [{ question, answer: answer.text }] };
  })
  .addEdge(START, "search")
  .addEdge("search", "read")
  .addEdge("read", END)
  .compile();

const State = new StateSchema({
  messages: MessagesValue,
  questions: z.array(z.string()).default([]),
  findings,
});

const plan = async ({ messages }) => {
  const answer = await model.invoke([new SystemMessage(PLAN), ...messages.slice(-1)]);
  const questions = answer.text.split("\n").filter((line) => line.trim() !== "");
  return {
    questions: questions.slice(0, QUESTIONS_AT_MOST),
    // Past the reducer, which would keep the findings of the report before this one.
    findings: new Overwrite([]),
  };
};

const report = async ({ messages, findings: found }) => {
  const lines = found.map(({ question, answer }) => `${question} ${answer}`);
  const instructions = new SystemMessage(`${REPORT}\n${lines.join("\n")}`);
  return { messages: [await model.invoke([instructions, ...messages.slice(-1)])] };
};

export const graph = new StateGraph(State)
  .addNode("plan", plan)
  .addNode("investigate", investigate)
  .addNode("report", report)
  .addEdge(START, "plan")
  .addConditionalEdges(
    "plan",
    ({ questions }) => questions.map((question) => new Send("investigate", { question })),
    ["investigate"],
  )
  .addEdge("investigate", "report")
  .addEdge("report", END)
  .compile();
