import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { Command, MemorySaver } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import type { RunnableGraph } from "../../../src/graphs/runnable-graph.ts";
import type { Api, Result, StateRecord } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { dataOf, openStream, readStream } from "../../helpers/server-sent-events.ts";
import { onServer } from "../../helpers/servers.ts";
import { command, openFrames, isRoot } from "../../protocols/streaming/frames.ts";
import { ask, WITH_FORMS } from "../../protocols/mcp/clients.ts";
import { aFront } from "../../protocols/agui/clients.ts";
import { BUILDERS, type Kind } from "./graphs/many-questions.ts";

/** Several questions wait, and some of them are answered. The oracle is what LangGraph.js itself returns from `invoke`. */

let server: TestServer;
let api: Api;
onServer(
  { graphConfigFile: fileURLToPath(new URL("./graphs/many-questions.json", import.meta.url)) },
  (opened) => ({ server, api } = opened),
);

interface Question {
  id: string;
  value: unknown;
}
const ITEMS = ["a", "b", "c"];
const valuesOf = (questions: readonly Question[] | undefined): unknown[] =>
  (questions ?? []).map(({ value }) => value).sort();

/** The same graph in this process. */
const alone = (kind: Kind) => {
  const graph = BUILDERS[kind](new MemorySaver()) as unknown as RunnableGraph;
  const configurable = { thread_id: "one" };
  const invoke = async (input: unknown) => (await graph.invoke(input, { configurable })) as Result;
  return {
    graph,
    configurable,
    begin: () => invoke({ items: ITEMS }),
    resume: (resume: object) => invoke(new Command({ resume })),
  };
};

const idsOf = ({ __interrupt__: questions = [] }: Result): Map<unknown, string> =>
  new Map(questions.map(({ id, value }) => [value, id]));

const aThreadThatAsks = async (kind: Kind): Promise<{ threadId: string; asked: Map<unknown, string> }> => {
  const threadId = await api.aThread();
  const asked = await api.aFinishedRun(threadId, { assistant_id: kind, input: { items: ITEMS } });
  return { threadId, asked: idsOf(asked) };
};

const stateOf = (threadId: string) =>
  api.state(threadId) as Promise<StateRecord & { interrupts: Question[] }>;

/** What waits, in each place that tells it. */
const everywhere = async (threadId: string, result: Result): Promise<Record<string, unknown[]>> => {
  const { interrupts } = await api.thread(threadId);
  const { body: found } = await api.post<{ interrupts: object }[]>("/threads/search", {
    ids: [threadId],
    select: ["interrupts"],
  });
  const [run] = await api.runs(threadId);
  return {
    "the answer": valuesOf(result.__interrupt__),
    "the joined run": valuesOf((await api.join(threadId, run!.run_id)).__interrupt__),
    "the thread": valuesOf(Object.values(interrupts).flat()),
    "the search": valuesOf(Object.values(found[0]!.interrupts).flat() as Question[]),
    "the state": valuesOf((await stateOf(threadId)).interrupts),
  };
};

describe("of several questions, those without an answer wait", () => {
  test.each<[Kind, string[]]>([
    ["nodes", ["b", "a"]],
    ["sends", ["b", "a", "c"]],
    ["twice", ["b 1", "a 1", "b 2", "c 1", "a 2", "c 2"]],
    ["subgraphs", ["b 1", "a 1", "b 2", "a 2", "c 1", "c 2"]],
    ["nested", ["b 2", "a 2", "b 1", "a 1", "c 2", "c 1"]],
    ["functional", ["a", "b", "c"]],
  ])("as LangGraph returns them from the graph %s, after each answer", async (kind, answers) => {
    const local = alone(kind);
    const { threadId, asked } = await aThreadThatAsks(kind);
    let [here, there] = [asked, idsOf(await local.begin())];
    for (const question of answers) {
      const resume = { [here.get(question)!]: `to ${question}` };
      const result = await api.aFinishedRun(threadId, { assistant_id: kind, command: { resume } });
      const expected = await local.resume({ [there.get(question)!]: `to ${question}` });
      const waiting = valuesOf(expected.__interrupt__);
      expect(await everywhere(threadId, result)).toEqual({
        "the answer": waiting,
        "the joined run": waiting,
        "the thread": waiting,
        "the search": waiting,
        "the state": waiting,
      });
      expect((await api.thread(threadId)).status).toBe(waiting.length > 0 ? "interrupted" : "idle");
      [here, there] = [idsOf(result), idsOf(expected)];
    }
    const { got } = (await local.graph.getState({ configurable: local.configurable })).values as Result;
    expect((await api.thread(threadId)).values?.["got"]).toEqual(got);
  });

  test("also if the answered task writes nothing", async () => {
    const { threadId, asked } = await aThreadThatAsks("silent");
    const resume = { [asked.get("b")!]: true };
    await api.aFinishedRun(threadId, { assistant_id: "silent", command: { resume } });
    expect(valuesOf(Object.values((await api.thread(threadId)).interrupts).flat())).toEqual(["a", "c"]);
  });

  test("while the state's tasks are those of LangGraph, which keep answered questions to the end of the step", async () => {
    const local = alone("sends");
    const { threadId, asked } = await aThreadThatAsks("sends");
    const there = idsOf(await local.begin());
    const resume = { [asked.get("a")!]: "A" };
    await api.aFinishedRun(threadId, { assistant_id: "sends", command: { resume } });
    await local.resume({ [there.get("a")!]: "A" });
    const { tasks, next } = await local.graph.getState({ configurable: local.configurable });
    const state = await stateOf(threadId);
    expect(state.next).toEqual(next);
    expect(state.tasks.map(({ interrupts }) => valuesOf(interrupts))).toEqual(
      tasks.map(({ interrupts }) => valuesOf(interrupts as Question[])),
    );
  });

  const questionsOf = async (threadId: string): Promise<unknown[]> =>
    valuesOf(Object.values((await api.thread(threadId)).interrupts).flat());

  test("on a copy of the thread", async () => {
    const { threadId, asked } = await aThreadThatAsks("sends");
    const resume = { [asked.get("a")!]: "A" };
    await api.aFinishedRun(threadId, { assistant_id: "sends", command: { resume } });
    const { body } = await api.post<{ thread_id: string }>(`/threads/${threadId}/copy`);
    expect(await questionsOf(body.thread_id)).toEqual(["b", "c"]);
  });

  test("after an update of a subgraph's state", async () => {
    const { threadId, asked } = await aThreadThatAsks("subgraphs");
    const answer = async (question: string): Promise<Map<unknown, string>> => {
      const resume = { [asked.get(question)!]: "yes" };
      return idsOf(await api.aFinishedRun(threadId, { assistant_id: "subgraphs", command: { resume } }));
    };
    asked.set("a 2", (await answer("a 1")).get("a 2")!);
    await answer("a 2");
    const { tasks } = await stateOf(threadId);
    const task = tasks.find(({ interrupts }) => interrupts[0]?.value === "b 1") as unknown as {
      checkpoint: object;
    };
    const update = { checkpoint: task.checkpoint, values: { got: ["by hand"] }, as_node: "__start__" };
    expect((await api.post(`/threads/${threadId}/state`, update)).status).toBe(200);
    expect(await questionsOf(threadId)).toEqual(["b 1", "c 1"]);
    expect((await api.thread(threadId)).status).toBe("interrupted");
  });

  test("after a run that was cancelled while it worked with an answer, which LangGraph then forgets", async () => {
    const local = alone("sends");
    const { threadId, asked } = await aThreadThatAsks("sends");
    const there = idsOf(await local.begin());
    await api.aFinishedRun(threadId, {
      assistant_id: "sends",
      command: { resume: { [asked.get("a")!]: "A" } },
    });
    await local.resume({ [there.get("a")!]: "A" });
    const stream = await openStream(`${server.url}/threads/${threadId}/runs/stream`, {
      body: {
        assistant_id: "sends",
        command: { resume: { [asked.get("b")!]: "stay" } },
        stream_mode: "updates",
      },
    });
    await stream.until(({ data }) => JSON.stringify(data).includes("__interrupt__"));
    const [run] = await api.runs(threadId);
    await api.cancel(threadId, run!.run_id);
    await api.untilQuiet(threadId);
    const abort = new AbortController();
    const stopped = local.graph.invoke(new Command({ resume: { [there.get("b")!]: "stay" } }), {
      configurable: local.configurable,
      signal: abort.signal,
    });
    abort.abort();
    await expect(stopped).rejects.toThrow();
    const { __interrupt__: waiting } = (await local.graph.invoke(null, {
      configurable: local.configurable,
    })) as Result;
    expect(await questionsOf(threadId)).toEqual(valuesOf(waiting));
    expect(valuesOf(waiting)).toEqual(["b", "c"]);
  });
});

describe("an answered question", () => {
  const partly = async (): Promise<{ threadId: string; asked: Map<unknown, string> }> => {
    const thread = await aThreadThatAsks("sends");
    const resume = { [thread.asked.get("a")!]: "A" };
    await api.aFinishedRun(thread.threadId, { assistant_id: "sends", command: { resume } });
    return thread;
  };

  test("is not answered again by `input.respond`", async () => {
    const { threadId, asked } = await partly();
    const respond = async (params: object) =>
      (await command(server.url, threadId, "input.respond", params)).answer;
    const refusal = { type: "error", error: "no_such_interrupt" };
    const id = asked.get("a")!;
    expect(await respond({ interrupt_id: id, response: "again" })).toMatchObject({
      ...refusal,
      message: `Interrupt '${id}' does not wait for an answer.`,
    });
    const both = [...asked].map(([value, interrupt_id]) => ({ interrupt_id, response: value }));
    expect(await respond({ responses: both })).toMatchObject(refusal);
    expect(await respond({ responses: both.slice(1) })).toMatchObject({ type: "success" });
    expect((await api.untilQuiet(threadId)).values?.["got"]).toEqual(["A", "b", "c"]);
  });

  test("is refused to a strict resume, which names the others", async () => {
    const { threadId, asked } = await partly();
    const resume = { [asked.get("a")!]: "again" };
    const { __error__: error } = await api.aFinishedRun(threadId, {
      assistant_id: "sends",
      command: { resume },
      strict_resume: true,
    });
    expect(error).toMatchObject({ reason: "no_such_interrupt", interrupt_ids: [asked.get("a")] });
    expect(new Set((error as unknown as { pending_ids: string[] }).pending_ids)).toEqual(
      new Set([asked.get("b"), asked.get("c")]),
    );
  });

  test("gets no part of an answer without an id", async () => {
    const { threadId } = await partly();
    await api.aFinishedRun(threadId, { assistant_id: "sends", command: { resume: false } });
    expect((await api.thread(threadId)).values?.["got"]).toEqual(["A", "false", "false"]);
  });

  test("is not in the last events of the run that answered it", async () => {
    const { threadId, asked } = await aThreadThatAsks("sends");
    const streamed = await readStream(`${server.url}/threads/${threadId}/runs/stream`, {
      body: {
        assistant_id: "sends",
        command: { resume: { [asked.get("a")!]: "A" } },
        stream_mode: ["values", "updates"],
      },
    });
    for (const mode of ["values", "updates"]) {
      const questions = dataOf<Result>(streamed, mode).flatMap(
        ({ __interrupt__: waiting = [] }) => waiting as Question[],
      );
      expect(valuesOf(questions)).toEqual(["b", "c"]);
    }
  });

  test("is asked by no event of event streaming, also of a reader that comes later", async () => {
    const { threadId } = await partly();
    const stream = await openFrames(server.url, threadId, { channels: ["lifecycle", "input"] });
    await stream.until(isRoot("interrupted"));
    stream.close();
    const asked = stream.seen.filter(({ method }) => method === "input.requested");
    expect(asked.map(({ params }) => params.data["value"]).sort()).toEqual(["b", "c"]);
  });

  test("is not shown to a front end of AG-UI", async () => {
    const { threadId } = await partly();
    const events = await aFront(server.url, "sends", { threadId }).run();
    const { outcome } = events.at(-1) as unknown as {
      outcome: { interrupts: { metadata: { langgraph: { raw: unknown } } }[] };
    };
    expect(outcome.interrupts.map(({ metadata }) => metadata.langgraph.raw).sort()).toEqual(["b", "c"]);
  });

  test("is not among the questions of an A2A task", async () => {
    interface Task {
      id: string;
      status: { state: string; message: { parts: { text?: string; metadata: { interrupt_id: string } }[] } };
    }
    const send = async (parts: object[], taskId?: string): Promise<Task> => {
      const message = { kind: "message", role: "user", messageId: randomUUID(), parts, taskId };
      const { body } = await api.post<{ result: Task }>("/a2a/sends", {
        ...{ jsonrpc: "2.0", id: 1, method: "message/send" },
        params: { message, configuration: { blocking: true } },
      });
      return body.result;
    };
    const first = await send([{ kind: "data", data: { items: ITEMS } }]);
    const { metadata } = first.status.message.parts.find(({ text }) => text === "a")!;
    const second = await send([{ kind: "data", data: { [metadata.interrupt_id]: "A" } }], first.id);
    expect(second.status.state).toBe("input-required");
    expect(second.status.message.parts.map(({ text }) => text).sort()).toEqual(["b", "c"]);
    const { body } = await api.post<{ result: Task }>("/a2a/sends", {
      ...{ jsonrpc: "2.0", id: 2, method: "tasks/get", params: { id: first.id } },
    });
    expect(body.result.status.message.parts.map(({ text }) => text).sort()).toEqual(["b", "c"]);
  });

  test("is not asked of an MCP client again", async () => {
    interface Asked {
      inputRequests: Record<string, { params: { message: string } }>;
      requestState: string;
    }
    const call = async (more: object): Promise<Asked> => {
      const params = { name: "sends", arguments: { items: ITEMS }, ...more };
      const { message } = await ask(server.url, "tools/call", params, { capabilities: WITH_FORMS });
      return message.result as unknown as Asked;
    };
    const messagesOf = ({ inputRequests }: Asked): string[] =>
      Object.values(inputRequests).map(({ params }) => params.message);
    const first = await call({});
    const [key] = Object.entries(first.inputRequests).find(([, { params }]) => params.message === "a")!;
    const inputResponses = { [key]: { action: "accept", content: { answer: "A" } } };
    const second = await call({ inputResponses, requestState: first.requestState });
    expect(messagesOf(second).sort()).toEqual(["b", "c"]);
  });
});
