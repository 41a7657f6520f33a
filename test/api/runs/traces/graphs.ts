import { tool } from "@langchain/core/tools";
import {
  Annotation,
  Command,
  END,
  entrypoint,
  interrupt,
  MessagesAnnotation,
  Send,
  START,
  StateGraph,
  task,
} from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { z } from "zod";
import { waitAtGate } from "../../../fixtures/gates.ts";
import { ReportingModel } from "./model.ts";
import { reference } from "./reference.ts";

const State = Annotation.Root({
  count: Annotation<number>({ reducer: (before, more) => before + more, default: () => 0 }),
  label: Annotation<string>(),
});
const callbacks = [reference];
const one = () => ({ count: 1 });

const plain = new ReportingModel({ model: "plain" });
const streaming = new ReportingModel({ model: "streaming", streams: true });
const broken = new ReportingModel({ model: "broken", fails: true });

export const twoSteps = new StateGraph(State)
  .addNode("first", one)
  .addNode("second", one)
  .addEdge(START, "first")
  .addEdge("first", "second")
  .compile()
  .withConfig({ callbacks });

export const branches = new StateGraph(State)
  .addNode("left", one)
  .addNode("right", one)
  .addNode("join", one)
  .addEdge(START, "left")
  .addEdge(START, "right")
  .addEdge(["left", "right"], "join")
  .compile()
  .withConfig({ callbacks });

const inner = new StateGraph(State)
  .addNode("innermost", async () => {
    await plain.invoke("hello");
    return one();
  })
  .addEdge(START, "innermost")
  .compile();
export const subgraphs = new StateGraph(State)
  .addNode("as_node", inner)
  .addNode("in_code", async (state) => await inner.invoke(state))
  .addEdge(START, "as_node")
  .addEdge("as_node", "in_code")
  .compile()
  .withConfig({ callbacks });

export const sends = new StateGraph(State)
  .addNode("work", inner)
  .addConditionalEdges(START, () => [new Send("work", { count: 1 }), new Send("work", { count: 2 })])
  .compile()
  .withConfig({ callbacks });

const add = tool(async ({ a, b }: { a: number; b: number }) => String(a + b), {
  name: "add",
  description: "Adds two numbers.",
  schema: z.object({ a: z.number(), b: z.number() }),
});
const ask = tool(async () => (await plain.invoke("inside a tool")).text, {
  name: "ask_model",
  description: "Asks a model.",
  schema: z.object({}),
});
const fail = tool(
  async () => {
    throw new Error("the tool is broken");
  },
  { name: "fail", description: "Fails.", schema: z.object({}) },
);
const agentWith = (model: ReportingModel) =>
  new StateGraph(MessagesAnnotation)
    .addNode("model", async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
    .addNode("tools", new ToolNode([add, ask, fail]))
    .addEdge(START, "model")
    .addConditionalEdges("model", ({ messages }) =>
      ((messages.at(-1) as { tool_calls?: unknown[] }).tool_calls ?? []).length > 0 ? "tools" : END,
    )
    .addEdge("tools", "model")
    .compile()
    .withConfig({ callbacks });
export const tools = agentWith(
  new ReportingModel({
    model: "calling",
    toolCalls: [
      { name: "add", args: { a: 1, b: 2 } },
      { name: "ask_model", args: {} },
    ],
  }),
);
export const brokenTool = agentWith(
  new ReportingModel({ model: "calling", toolCalls: [{ name: "fail", args: {} }] }),
);

let failures = 0;
export const retries = new StateGraph(State)
  .addNode(
    "unsteady",
    () => {
      failures += 1;
      if (failures % 3 !== 0) throw new Error("not yet");
      return one();
    },
    { retryPolicy: { maxAttempts: 3, initialInterval: 1, jitter: false, logWarning: false } },
  )
  .addEdge(START, "unsteady")
  .compile()
  .withConfig({ callbacks });

export const asks = new StateGraph(State)
  .addNode("ask", () => {
    interrupt("go on?");
    return one();
  })
  .addEdge(START, "ask")
  .compile()
  .withConfig({ callbacks });

export const failing = new StateGraph(State)
  .addNode("fine", one)
  .addNode("broken", async () => {
    await broken.invoke("hello");
    return one();
  })
  .addEdge(START, "fine")
  .addEdge("fine", "broken")
  .compile()
  .withConfig({ callbacks });

export const streams = new StateGraph(State)
  .addNode("answer", async () => {
    let last = "";
    for await (const chunk of await streaming.stream("hello")) last = chunk.text;
    await streaming.invoke(last);
    return one();
  })
  .addEdge(START, "answer")
  .compile()
  .withConfig({ callbacks });

const hands = new StateGraph(State)
  .addNode("hand_over", () => new Command({ graph: Command.PARENT, goto: "after" }))
  .addEdge(START, "hand_over")
  .compile();
export const commands = new StateGraph(State)
  .addNode("before", hands, { ends: ["after"] })
  .addNode("after", one)
  .addEdge(START, "before")
  .compile()
  .withConfig({ callbacks });

const double = task("double", async (value: number) => value * 2);
export const functional = entrypoint({ name: "functional" }, async ({ count }: { count: number }) => {
  const doubled = await Promise.all([double(count), double(count + 1)]);
  return { count: doubled[0] };
});

export const held = new StateGraph(State)
  .addNode("said", async () => {
    await plain.invoke("hello");
    return one();
  })
  .addNode("waits", async ({ label }, { signal }) => {
    await waitAtGate(label, label, signal);
    return one();
  })
  .addEdge(START, "said")
  .addEdge("said", "waits")
  .compile();

export const many = new StateGraph(State)
  .addNode("calls", async () => {
    for (let call = 0; call < 3_000; call += 1) await add.invoke({ a: call, b: 1 });
    return one();
  })
  .addEdge(START, "calls")
  .compile();
