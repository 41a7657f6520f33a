/**
 * Parallel branches and a subgraph: the topic is split into questions, a small graph of its own works on
 * each at the same time (`Send`), and their findings come together in one report.
 */
import { AIMessage } from "@langchain/core/messages";
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

const Finding = z.object({ question: z.string(), answer: z.string() });

/** Branches that run at the same time write the same key: the reducer says how the writes come together. */
const findings = new ReducedValue(z.array(Finding).default([]), {
  inputSchema: z.array(Finding),
  reducer: (known, added) => [...known, ...added],
});

const Question = new StateSchema({
  question: z.string(),
  sources: z.array(z.string()).default([]),
  findings,
});

/** The subgraph: one question, searched and then read. */
const investigator = new StateGraph(Question)
  .addNode("search", ({ question }) => ({
    sources: [`Encyclopedia, "${question}"`, `Handbook, "${question}"`],
  }))
  .addNode("read", ({ question, sources }) => ({
    findings: [{ question, answer: `${sources.length} sources agree: ${sources.join("; ")}.` }],
  }))
  .addEdge(START, "search")
  .addEdge("search", "read")
  .addEdge("read", END)
  .compile();

const State = new StateSchema({
  messages: MessagesValue,
  topic: z.string().default("everything"),
  questions: z.array(z.string()).default([]),
  findings,
});

function plan(state: typeof State.State) {
  const topic = state.messages.findLast(({ type }) => type === "human")?.text ?? state.topic;
  const questions = ["What is", "Who needs", "What comes after"].map((start) => `${start} ${topic}?`);
  // Past the reducer: the findings of the thread's run before this one would stay otherwise.
  return { topic, questions, findings: new Overwrite<z.infer<typeof Finding>[]>([]) };
}

const investigateEach = (state: typeof State.State) =>
  state.questions.map((question) => new Send("investigate", { question }));

function report(state: typeof State.State) {
  const lines = state.findings.map(({ question, answer }) => `- ${question} ${answer}`);
  return { messages: [new AIMessage(`Report on ${state.topic}\n${lines.join("\n")}`)] };
}

export const graph = new StateGraph(State)
  .addNode("plan", plan)
  .addNode("investigate", investigator)
  .addNode("report", report)
  .addEdge(START, "plan")
  .addConditionalEdges("plan", investigateEach, ["investigate"])
  .addEdge("investigate", "report")
  .addEdge("report", END)
  .compile();
