/** Graphs that do what the tools of the official conformance suite must do. */
import { setTimeout as pause } from "node:timers/promises";
import { AIMessage } from "@langchain/core/messages";
import {
  Annotation,
  END,
  interrupt,
  MessagesAnnotation,
  START,
  StateGraph,
  type LangGraphRunnableConfig,
} from "@langchain/langgraph";

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  name: Annotation<string>(),
  seconds: Annotation<number>(),
  filename: Annotation<string>(),
  label: Annotation<string>(),
});
type Values = typeof State.State;
type Content = ConstructorParameters<typeof AIMessage>[0];

const answering = (answer: (values: Values, config: LangGraphRunnableConfig) => Promise<Content> | Content) =>
  new StateGraph(State)
    .addNode("answer", async (values, config) => ({
      messages: [new AIMessage(await answer(values, config))],
    }))
    .addEdge(START, "answer")
    .addEdge("answer", END)
    .compile();

const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const image = { type: "image", data: PIXEL, mimeType: "image/png" };
const audio = { type: "audio", data: "UklGRiQAAABXQVZFZm10IBAAAAABAAEA", mimeType: "audio/wav" };

export const simpleText = answering(() => "This is a simple text response for testing.");
export const imageContent = answering(() => ({ content: [image] }) as never);
export const audioContent = answering(() => ({ content: [audio] }) as never);
export const failing = answering(() => {
  throw new Error("This tool intentionally returns an error for testing");
});
export const withProgress = new StateGraph(State)
  .addNode("first", () => ({}))
  .addNode("second", () => ({}))
  .addNode("third", () => ({ messages: [new AIMessage("Done.")] }))
  .addEdge(START, "first")
  .addEdge("first", "second")
  .addEdge("second", "third")
  .addEdge("third", END)
  .compile();

const asking = (message: string, field: string): string => {
  const requestedSchema = { type: "object", properties: { [field]: { type: "string" } }, required: [field] };
  const answer: unknown = interrupt({ message, requestedSchema });
  return String((answer as Record<string, unknown> | undefined)?.[field]);
};
export const elicitation = answering(() => `Hello, ${asking("What is your name?", "name")}!`);
export const multiRound = new StateGraph(State)
  .addNode("ask-name", () => ({ name: asking("Step 1: What is your name?", "name") }))
  .addNode("ask-color", ({ name }) => ({
    messages: [new AIMessage(`${name} likes ${asking("Step 2: What is your favorite color?", "color")}.`)],
  }))
  .addEdge(START, "ask-name")
  .addEdge("ask-name", "ask-color")
  .addEdge("ask-color", END)
  .compile();
export const multipleInputs = new StateGraph(State)
  .addNode("ask-name", () => ({ name: asking("What is your name?", "name") }))
  .addNode("ask-color", () => ({ label: asking("What is your favorite color?", "color") }))
  .addEdge(START, "ask-name")
  .addEdge(START, "ask-color")
  .addNode("end", ({ name, label }) => ({ messages: [new AIMessage(`${name}: ${label}`)] }))
  .addEdge(["ask-name", "ask-color"], "end")
  .addEdge("end", END)
  .compile();

export const greet = answering(({ name }) => `Hello, ${name}!`);
export const slowCompute = answering(async ({ seconds }, { signal }) => {
  await pause((seconds ?? 0) * 1_000, undefined, { signal });
  return `Computed for ${seconds} seconds.`;
});
export const failingJob = answering(async () => {
  await pause(1_000);
  throw new Error("The job failed.");
});
export const confirmDelete = answering(({ filename }) => {
  asking(`Delete ${filename}?`, "confirm");
  return `Deleted ${filename}.`;
});
