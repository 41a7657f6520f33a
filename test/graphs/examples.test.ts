import type { BaseMessage } from "@langchain/core/messages";
import { Command, MemorySaver } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import type { GraphRunOptions, RunnableGraph } from "../../src/graphs/runnable-graph.ts";
import { EXAMPLES, failure, loadConfig } from "./helpers.ts";

const thread: GraphRunOptions = { configurable: { thread_id: "t" } };
const ask = (content: string) => ({ messages: [{ role: "user", content }] });

async function example(id: string): Promise<RunnableGraph> {
  const graphs = await loadConfig(EXAMPLES, { checkpointer: new MemorySaver() });
  return graphs.resolve(id);
}

const stateOf = async (graph: RunnableGraph) =>
  (await graph.getState(thread)).values as { messages: BaseMessage[]; [key: string]: unknown };

const lastText = async (graph: RunnableGraph) => (await stateOf(graph)).messages.at(-1)?.text ?? "";

describe("the example agent, without a key", () => {
  it.each([
    ["What's the weather in Paris?", "get_weather", { place: "Paris" }],
    ["weather for new york today", "get_weather", { place: "new york" }],
    ["Tell me about the weather at Saint-Malo, please", "get_weather", { place: "Saint-Malo" }],
    ["What is 2 + 3?", "calculate", { expression: "2 + 3" }],
    ["what is (2 + 3) * -4.5", "calculate", { expression: "(2 + 3) * -4.5" }],
  ])("calls a tool for %s", async (question, name, args) => {
    const graph = await example("agent");
    await graph.invoke(ask(question), thread);
    const { messages } = await stateOf(graph);
    expect(messages.map(({ type }) => type)).toEqual(["human", "ai", "tool", "ai"]);
    expect(messages[1]).toMatchObject({ tool_calls: [{ name, args }] });
    expect(messages[3]?.text).toContain(messages[2]?.text);
  });

  it.each([
    ["2 + 3 * 4", "2 + 3 * 4 = 14"],
    ["(2 + 3) * 4", "(2 + 3) * 4 = 20"],
    ["10 - 4 - 3", "10 - 4 - 3 = 3"],
    ["-2 * -(3 - 5)", "-2 * -(3 - 5) = -4"],
    ["7 / 2", "7 / 2 = 3.5"],
    ["1 / 0", "divides by zero"],
    ["2 + (3", "not closed"],
  ])("works out %s", async (expression, answer) => {
    const { calculate } = await import("../../graphs/tools.ts");
    const text = await Promise.resolve(calculate.invoke({ expression })).catch(
      (error: Error) => error.message,
    );
    expect(text).toContain(answer);
  });

  it("calls two tools at once for a question that needs both", async () => {
    const graph = await example("agent");
    await graph.invoke(ask("What is 2 + 3 and what's the weather in Rome?"), thread);
    const { messages } = await stateOf(graph);
    expect(messages.map(({ type }) => type)).toEqual(["human", "ai", "tool", "tool", "ai"]);
    expect(messages.at(-1)?.text).toMatch(/in Rome.*2 \+ 3 = 5/);
  });

  it("reports the words of the question and of the answer as tokens", async () => {
    const graph = await example("agent");
    await graph.invoke(ask("Hello to you"), { ...thread, context: { system_prompt: "Be brief." } });
    const { messages } = await stateOf(graph);
    const output_tokens = messages.at(-1)!.text.split(" ").length;
    const usage_metadata = { input_tokens: 5, output_tokens, total_tokens: 5 + output_tokens };
    expect(messages.at(-1)).toMatchObject({ usage_metadata });
  });

  it("answers a failing tool with its error", async () => {
    const graph = await example("agent");
    await graph.invoke(ask("what is 1 / 0"), thread);
    expect(await lastText(graph)).toContain("divides by zero");
  });

  it("gives the same answer to the same question, and remembers its thread", async () => {
    const graph = await example("agent");
    await graph.invoke(ask("My name is Ada."), thread);
    await graph.invoke(ask("What is my name?"), thread);
    expect(await lastText(graph)).toBe("Your name is Ada.");
    const other = await example("agent");
    await other.invoke(ask("What is my name?"), thread);
    expect(await lastText(other)).not.toContain("Ada");
  });

  it("follows the context: persona, language, tools", async () => {
    const graph = await example("agent");
    const answerWith = async (context: unknown) => {
      await graph.invoke(ask("What's the weather in Paris?"), { ...thread, context });
      return lastText(graph);
    };
    expect(await answerWith({ system_prompt: "You are Captain Nemo, answer in French." })).toMatch(
      /^Bonjour! It is .* in Paris.* — Captain Nemo$/,
    );
    expect(await answerWith({ tools: ["calculate"] })).toContain("not given the tool get_weather");
    expect(await answerWith({ tools: [] })).toContain("not given the tool get_weather");
    expect(
      (await failure(graph.invoke(ask("Hi"), { ...thread, context: { tools: ["rm"] } }))).message,
    ).toMatch(/tools/);
  });

  it("answers offline, too, if the key of a named provider is not set", async () => {
    const graph = await example("agent");
    await graph.invoke(ask("Hi"), { ...thread, context: { model_name: "mistralai:any" } });
    expect(await lastText(graph)).toContain('You said: "Hi"');
  });

  it("streams token by token, with the ids of the messages in the state", async () => {
    const graph = await example("agent");
    const streamed = new Map<string, string[]>();
    const nodes: string[] = [];
    for await (const [mode, data] of (await graph.stream(ask("What is 2 + 3?"), {
      ...thread,
      streamMode: ["messages", "updates"],
    })) as AsyncIterable<["messages", [BaseMessage]] | ["updates", Record<string, unknown>]>) {
      if (mode === "updates") nodes.push(...Object.keys(data));
      else streamed.set(data[0].id ?? "", [...(streamed.get(data[0].id ?? "") ?? []), data[0].text]);
    }
    expect(nodes).toEqual(["agent", "tools", "agent"]);
    const [, ...answers] = (await stateOf(graph)).messages;
    expect([...streamed.keys()]).toEqual(answers.map(({ id }) => id));
    const tokens = streamed.get(answers.at(-1)?.id ?? "") ?? [];
    expect(tokens.length).toBeGreaterThan(3);
    expect(tokens.join("")).toBe(answers.at(-1)?.text);
  });

  it("stops in the middle of an answer when the run is cancelled", async () => {
    const graph = await example("agent");
    const controller = new AbortController();
    const words = "word ".repeat(2000);
    const stream = (await graph.stream(ask(words), {
      ...thread,
      streamMode: "messages",
      signal: controller.signal,
    })) as AsyncIterable<unknown>;
    let tokens = 0;
    const reading = (async () => {
      for await (const _ of stream) if ((tokens += 1) === 3) controller.abort();
    })();
    expect((await failure(reading)).name).toBe("AbortError");
    expect(tokens).toBeLessThan(100);
  });
});

describe("the approval example", () => {
  const draftOf = async (graph: RunnableGraph) => {
    await graph.invoke(ask("a refund"), thread);
    const [task] = (await graph.getState(thread)).tasks;
    return task?.interrupts[0]?.value as { draft: string };
  };

  it("stops with the draft, and waits", async () => {
    const graph = await example("approval");
    expect((await draftOf(graph)).draft).toContain("a refund");
    expect((await graph.getState(thread)).next).toEqual(["review"]);
    expect(await stateOf(graph)).toMatchObject({ status: "drafted" });
  });

  it.each([
    ["approve", { decision: "approve" }, "sent", /^Sent: Dear customer.*a refund/],
    ["a bare true", true, "sent", /^Sent: Dear customer/],
    ["an edit", { decision: "edit", text: "Dear Ada, done." }, "sent", /^Sent: Dear Ada, done\.$/],
    ["a bare text", "Dear Ada, done.", "sent", /^Sent: Dear Ada, done\.$/],
    ["reject", { decision: "reject", reason: "rude" }, "rejected", /nothing was sent/],
  ])("continues with %s", async (_name, resume, status, text) => {
    const graph = await example("approval");
    await draftOf(graph);
    await graph.invoke(new Command({ resume }), thread);
    expect(await stateOf(graph)).toMatchObject({ status });
    expect(await lastText(graph)).toMatch(text);
    expect((await graph.getState(thread)).next).toEqual([]);
  });

  it("continues with an answer to the interrupt of that id", async () => {
    const graph = await example("approval");
    await draftOf(graph);
    const id = (await graph.getState(thread)).tasks[0]?.interrupts[0]?.id ?? "";
    await graph.invoke(new Command({ resume: { [id]: false } }), thread);
    expect(await stateOf(graph)).toMatchObject({ status: "rejected" });
  });

  it("asks again after an answer that is not a decision", async () => {
    const graph = await example("approval");
    await draftOf(graph);
    await graph.invoke(new Command({ resume: { decision: "perhaps" } }), thread);
    const [task] = (await graph.getState(thread)).tasks;
    expect(task?.interrupts[0]?.value).toMatchObject({ problem: "Not a decision." });
    await graph.invoke(new Command({ resume: { decision: "approve" } }), thread);
    expect(await stateOf(graph)).toMatchObject({ status: "sent" });
  });

  it("shows a new draft in the next run of the thread", async () => {
    const graph = await example("approval");
    await draftOf(graph);
    await graph.invoke(new Command({ resume: true }), thread);
    expect((await draftOf(graph)).draft).toContain("a refund");
    expect(await stateOf(graph)).toMatchObject({ status: "drafted" });
  });
});

describe("the research example", () => {
  it("works on its questions in parallel subgraphs and combines the findings", async () => {
    const graph = await example("research");
    const seen: [string, string][] = [];
    for await (const [namespace, update] of (await graph.stream(ask("otters"), {
      ...thread,
      streamMode: "updates",
      subgraphs: true,
    })) as AsyncIterable<[string[], Record<string, unknown>]>) {
      seen.push([namespace.join("|").replace(/:.*/, ""), Object.keys(update)[0] ?? ""]);
    }
    expect(seen[0]).toEqual(["", "plan"]);
    const branches = seen.slice(1, -1);
    // All three have searched before the first has read, so they run at the same time.
    expect(branches.slice(0, 3)).toEqual(Array(3).fill(["investigate", "search"]));
    expect(branches.filter(([, node]) => node === "read")).toHaveLength(3);
    expect(seen.at(-1)).toEqual(["", "report"]);

    const { findings, topic } = await stateOf(graph);
    expect(topic).toBe("otters");
    expect(findings).toMatchObject(
      ["What is otters?", "Who needs otters?", "What comes after otters?"].map((question) => ({ question })),
    );
    expect((await lastText(graph)).split("\n")).toHaveLength(4);
  });

  it("starts again with the next topic of the thread", async () => {
    const graph = await example("research");
    await graph.invoke(ask("otters"), thread);
    await graph.invoke(ask("beavers"), thread);
    expect(await lastText(graph)).toMatch(/^Report on beavers/);
    expect(await lastText(graph)).not.toContain("otters");
  });

  it("gives the same report each time", async () => {
    const [first, second] = [await example("research"), await example("research")];
    await first.invoke({ topic: "otters" }, thread);
    await second.invoke({ topic: "otters" }, thread);
    expect(await lastText(first)).toBe(await lastText(second));
  });
});
