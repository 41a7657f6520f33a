import { describe, expect, test } from "vitest";
import { graph as research } from "../../../graphs/research.ts";
import { saying, textsOf, type Api, type Message } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { dataOf, namesOf, openStream, readStream, type SentEvent } from "../../helpers/server-sent-events.ts";
import { onServer } from "../../helpers/servers.ts";

let server: TestServer;
let api: Api;
onServer({}, (opened) => ({ server, api } = opened));

const streamed = async (
  assistant_id: string,
  stream_mode: unknown,
  more: object = {},
): Promise<SentEvent[]> =>
  await readStream(`${server.url}/threads/${await api.aThread()}/runs/stream`, {
    body: { assistant_id, input: saying("hello"), stream_mode, ...more },
  });
/** `StreamMode` of the JavaScript SDKs 1.8 to 2.0 and of Python's, as they are sent. */
const CLIENT_MODES = [
  "values",
  "messages",
  "messages-tuple",
  "updates",
  "events",
  "debug",
  "tasks",
  "checkpoints",
  "custom",
  "tools",
  "lifecycle",
];
const idsOf = (messages: Message[]) => messages.map(({ id }) => id);

/** A message of the `messages` modes. */
type Chunk = Message & { id: string; content: string };
type Tuple = [Chunk, Record<string, unknown>];

/** A checkpoint of the modes `checkpoints` and `debug`. */
interface Shown {
  config: { configurable: Record<string, unknown> };
  parent_config: { configurable: Record<string, unknown> } | null;
  checkpoint: Record<string, unknown>;
}

describe("every stream", () => {
  test.each([["updates"], [["values", "updates"]], [["updates", "no-such-mode"]], [null], [[]]])(
    "begins with metadata and numbers its events from 0 (stream_mode %j)",
    async (mode) => {
      const events = await streamed("two-step", mode);
      expect(events[0]).toMatchObject({ id: 0, event: "metadata" });
      expect(events[0]?.data).toEqual({ run_id: expect.stringMatching(/^[0-9a-f-]{36}$/), attempt: 1 });
      expect(events.map(({ id }) => id)).toEqual(events.map((_, index) => index));
      expect(namesOf(events).filter((name) => name === "metadata")).toHaveLength(1);
      expect(namesOf(events)).not.toContain("end");
    },
  );

  test("consists of frames with id, event and one line of data", async () => {
    const events = await streamed("two-step", ["values", "messages", "debug"]);
    for (const { frame } of events) expect(frame).toMatch(/^id: \d+\nevent: \S+\ndata: .+$/);
  });

  test("closes when the result can be read: status, state, thread, history", async () => {
    for (let round = 0; round < 10; round += 1) {
      const threadId = await api.aThread();
      const events = await readStream(`${server.url}/threads/${threadId}/runs/stream`, {
        body: { assistant_id: "two-step", input: saying("hello"), stream_mode: "updates" },
      });
      const { run_id: runId } = events[0]?.data as { run_id: string };
      const [run, state, thread, history] = await Promise.all([
        api.run(threadId, runId),
        api.state(threadId),
        api.thread(threadId),
        api.history(threadId),
      ]);
      expect(run.status).toBe("success");
      expect(thread.status).toBe("idle");
      expect(textsOf(state.values.messages)).toEqual(["hello", "first", "second"]);
      expect(thread.values).toEqual(state.values);
      expect(history[0]?.checkpoint?.checkpoint_id).toBe(state.checkpoint?.checkpoint_id);
    }
  });

  test("of a failed run ends with the error, and the run and its thread have the status error", async () => {
    const threadId = await api.aThread();
    const events = await readStream(`${server.url}/threads/${threadId}/runs/stream`, {
      body: { assistant_id: "failing", input: { reason: "out of luck" }, stream_mode: "updates" },
    });
    expect(namesOf(events)).toEqual(["metadata", "updates", "error"]);
    expect(events.at(-1)?.data).toEqual({ error: "Error", message: "out of luck" });
    expect((await api.runs(threadId))[0]).toMatchObject({ status: "error" });
    expect(await api.thread(threadId)).toMatchObject({ status: "error", error: { message: "out of luck" } });
  });
});

describe("the mode", () => {
  test("values streams the whole state after each step, and is the default", async () => {
    for (const mode of ["values", null]) {
      const values = dataOf<{ messages: Message[] }>(await streamed("two-step", mode), "values");
      expect(values.map(({ messages }) => textsOf(messages))).toEqual([
        ["hello"],
        ["hello", "first"],
        ["hello", "first", "second"],
      ]);
      expect(idsOf(values[2]?.messages ?? []).slice(0, 2)).toEqual(idsOf(values[1]?.messages ?? []));
    }
  });

  test("updates streams what each node changed, under the node's name", async () => {
    const events = await streamed("two-step", "updates");
    expect(namesOf(events)).toEqual(["metadata", "updates", "updates"]);
    expect(dataOf(events, "updates")).toEqual([
      { first: { messages: [expect.objectContaining({ type: "ai", content: "first" })] } },
      { second: { messages: [expect.objectContaining({ type: "ai", content: "second" })] } },
    ]);
  });

  test("several modes are interleaved in the order in which events occur", async () => {
    expect(namesOf(await streamed("two-step", ["values", "updates"]))).toEqual([
      "metadata",
      "values",
      "updates",
      "values",
      "updates",
      "values",
    ]);
  });

  test("custom streams the graph's own events", async () => {
    const events = await streamed("custom-events", "custom", { input: { count: 120 } });
    expect(namesOf(events)).toEqual(["metadata", ...Array<string>(120).fill("custom")]);
    expect(dataOf(events, "custom")).toEqual(Array.from({ length: 120 }, (_, index) => ({ index })));
  });

  test("messages-tuple streams each token with its metadata, under one id per message", async () => {
    const events = await streamed("tokens", "messages-tuple", { input: { ...saying("go"), tokens: 20 } });
    const tuples = dataOf<Tuple>(events, "messages").filter(([chunk]) => chunk.type !== "human");
    expect(tuples.map(([chunk]) => chunk.content).join("")).toBe(tokens(20));
    expect(new Set(tuples.map(([chunk]) => chunk.id)).size).toBe(1);
    expect(tuples[0]?.[0]).toMatchObject({ type: "ai", id: expect.any(String) });
    const { run_id: runId } = events[0]?.data as { run_id: string };
    expect(tuples[0]?.[1]).toMatchObject({ langgraph_node: "model", langgraph_step: 1, run_id: runId });
    expect(new Set(namesOf(events))).toEqual(new Set(["metadata", "messages"]));
  });

  test("messages streams growing messages, each introduced once, and whole ones", async () => {
    const events = await streamed("tokens", "messages", { input: { ...saying("go"), tokens: 5 } });
    const [introduction] = dataOf<Record<string, { metadata: object }>>(events, "messages/metadata");
    const partial = dataOf<Chunk[]>(events, "messages/partial").flat();
    const id = partial[0]?.id ?? "";
    expect(introduction?.[id]?.metadata).toMatchObject({ langgraph_node: "model" });
    expect(partial.map(({ content }) => content)).toEqual(
      expect.arrayContaining([1, 2, 3, 4, 5].map((count) => tokens(count))),
    );
    expect(new Set(partial.map((message) => message.id))).toEqual(new Set([id]));
    const complete = dataOf<Chunk[]>(events, "messages/complete").flat();
    expect(complete.find((message) => message.id === id)?.content).toBe(tokens(5));
    const introductions = namesOf(events).filter((name) => name === "messages/metadata");
    expect(introductions).toHaveLength(1);
    expect(namesOf(events).indexOf("messages/metadata")).toBeLessThan(
      namesOf(events).indexOf("messages/partial"),
    );
  });

  test("messages streams messages that no model streamed as complete", async () => {
    const events = await streamed("two-step", "messages");
    expect(textsOf(dataOf<Message[]>(events, "messages/complete").flat())).toEqual(
      expect.arrayContaining(["first", "second"]),
    );
  });

  test("events streams all callback events, with the run's id so that clients can cancel", async () => {
    const events = await streamed("tokens", "events", { input: { ...saying("go"), tokens: 3 } });
    const { run_id: runId } = events[0]?.data as { run_id: string };
    const inside = dataOf<{ event: string; name: string; data: object; metadata: Record<string, unknown> }>(
      events,
      "events",
    );
    const kinds = inside.map(({ event }) => event);
    for (const kind of ["on_chain_start", "on_chat_model_stream", "on_chat_model_end", "on_chain_end"]) {
      expect(kinds).toContain(kind);
    }
    const token = inside.find(({ event }) => event === "on_chat_model_stream");
    expect(token?.metadata).toMatchObject({
      langgraph_node: "model",
      run_id: runId,
      langgraph_checkpoint_ns: expect.any(String),
    });
    expect(new Set(namesOf(events))).toEqual(new Set(["metadata", "events"]));
  });

  test("events repeats no chunk, and contains nothing hidden", async () => {
    const events = await streamed("tokens", "events", { input: { ...saying("go"), tokens: 3 } });
    const { run_id: runId } = events[0]?.data as { run_id: string };
    const inside = dataOf<{ event: string; run_id: string; tags?: string[]; data: { chunk?: unknown } }>(
      events,
      "events",
    );
    expect(inside.filter(({ tags }) => tags?.includes("langsmith:hidden"))).toEqual([]);
    // The run's own chunks equal those of its other modes.
    const kindsOfRun = inside.filter(({ run_id: id }) => id === runId).map(({ event }) => event);
    expect(kindsOfRun).toEqual(["on_chain_start", "on_chain_end"]);
    const tokens = inside.filter(({ event }) => event === "on_chat_model_stream");
    expect(tokens).toHaveLength(3);
  });

  test("events combines with other modes, and the result is right", async () => {
    const threadId = await api.aThread();
    const events = await readStream(`${server.url}/threads/${threadId}/runs/stream`, {
      body: {
        assistant_id: "two-step",
        input: saying("hello"),
        stream_mode: ["events", "values", "updates", "messages-tuple"],
      },
    });
    expect(dataOf(events, "values")).toHaveLength(3);
    expect(dataOf(events, "updates")).toHaveLength(2);
    expect(await api.thread(threadId)).toMatchObject({ status: "idle" });
    const waited = await api.aFinishedRun(await api.aThread(), {
      assistant_id: "two-step",
      input: saying("hello"),
      stream_mode: ["events"],
    });
    expect(textsOf(waited.messages)).toEqual(["hello", "first", "second"]);
  });

  test("events on an interrupt leaves the thread interrupted", async () => {
    const threadId = await api.aThread();
    await readStream(`${server.url}/threads/${threadId}/runs/stream`, {
      body: {
        assistant_id: "approval",
        input: saying("a refund"),
        stream_mode: "events",
        stream_subgraphs: true,
      },
    });
    expect(await api.thread(threadId)).toMatchObject({ status: "interrupted" });
  });

  test("debug streams checkpoints and tasks, with checkpoint and parent_checkpoint", async () => {
    const debug = dataOf<{ type: string; payload: Record<string, unknown> }>(
      await streamed("two-step", "debug"),
      "debug",
    );
    expect(new Set(debug.map(({ type }) => type))).toEqual(new Set(["checkpoint", "task", "task_result"]));
    const checkpoints = debug.filter(({ type }) => type === "checkpoint").map(({ payload }) => payload);
    expect(checkpoints.length).toBeGreaterThanOrEqual(4);
    const ids = checkpoints.map(({ checkpoint }) => (checkpoint as { checkpoint_id: string }).checkpoint_id);
    expect(checkpoints[0]).toMatchObject({ parent_checkpoint: null });
    expect(checkpoints[1]).toMatchObject({ parent_checkpoint: { checkpoint_id: ids[0] } });
  });

  test("tasks streams each task's start and result", async () => {
    const tasks = dataOf<{ id: string; name: string; result?: unknown }>(
      await streamed("two-step", "tasks"),
      "tasks",
    );
    expect(tasks.map(({ name }) => name)).toEqual(["first", "first", "second", "second"]);
    expect(tasks.map((task) => "result" in task)).toEqual([false, true, false, true]);
    expect(tasks[0]?.id).toBe(tasks[1]?.id);
  });

  test("checkpoints streams every checkpoint in the form of the history", async () => {
    const threadId = await api.aThread();
    const events = await readStream(`${server.url}/threads/${threadId}/runs/stream`, {
      body: { assistant_id: "two-step", input: saying("hello"), stream_mode: "checkpoints" },
    });
    const sent = dataOf<{ checkpoint: { checkpoint_id: string }; next: string[]; values: unknown }>(
      events,
      "checkpoints",
    );
    const history = (await api.history(threadId)).reverse();
    expect(sent.map(({ checkpoint, next }) => [checkpoint.checkpoint_id, next])).toEqual(
      history.map(({ checkpoint, next }) => [checkpoint?.checkpoint_id, next]),
    );
  });

  test.each(["checkpoints", "debug"])(
    "%s has LangGraph's configs beside the checkpoints, without the server's own keys",
    async (mode) => {
      const threadId = await api.aThread();
      const events = await readStream(`${server.url}/threads/${threadId}/runs/stream`, {
        body: {
          assistant_id: "research",
          input: saying("cats"),
          metadata: { from: "a test" },
          config: {
            tags: ["red"],
            recursion_limit: 30,
            configurable: { tenant: "blue", constructor: "brick", __secret: 1, langgraph_auth_user: "eve" },
          },
          stream_mode: mode,
          stream_subgraphs: true,
        },
      });
      const { run_id: runId } = events[0]?.data as { run_id: string };
      const sent = events
        .filter(({ event }) => event.split("|")[0] === mode)
        .map(({ event, data }) => ({ event, data: data as { type?: string; payload: Shown } & Shown }))
        .filter(({ data }) => mode === "checkpoints" || data.type === "checkpoint")
        .map(({ event, data }) => ({ event, shown: mode === "debug" ? data.payload : data }));
      const ofRoot = sent.filter(({ event }) => event === mode).map(({ shown }) => shown);
      expect(ofRoot.length).toBeGreaterThanOrEqual(4);
      for (const { config, checkpoint } of ofRoot) {
        const { checkpoint_map: _, ...place } = checkpoint;
        expect(config).toMatchObject({
          tags: expect.arrayContaining(["red"]),
          recursion_limit: 30,
          metadata: { from: "a test", run_id: runId },
          configurable: {
            ...place,
            run_id: runId,
            graph_id: "research",
            tenant: "blue",
            constructor: "brick",
          },
        });
      }
      expect(ofRoot[0]?.parent_config).toBeNull();
      expect(ofRoot[1]?.parent_config?.configurable).toMatchObject({
        checkpoint_id: ofRoot[0]?.checkpoint.checkpoint_id,
        tenant: "blue",
      });
      const inside = sent.find(({ event }) => event.startsWith(`${mode}|investigate:`))?.shown;
      expect(inside?.config.configurable.checkpoint_ns).toMatch(/^investigate:/);
      const published = JSON.stringify(sent);
      for (const hidden of ["run_attempt", "__secret", "langgraph_auth", "callbacks"])
        expect(published.includes(hidden), hidden).toBe(false);
      const keys = sent.flatMap(({ shown }) => Object.keys(shown.config.configurable));
      expect(keys.filter((key) => key.startsWith("__"))).toEqual([]);
    },
  );

  test("tools is accepted, and streams the calls of the agent's tools", async () => {
    const events = await streamed("agent", ["tools", "values"], {
      input: saying("What is the weather in Paris?"),
    });
    expect(namesOf(events)).not.toContain("error");
    expect(dataOf(events, "tools").length).toBeGreaterThan(0);
    const last = dataOf<{ messages: Message[] }>(events, "values").at(-1);
    expect(last?.messages.map(({ type }) => type)).toEqual(["human", "ai", "tool", "ai"]);
  });

  test("with an unknown name beside a known one emits nothing, since clients can be newer", async () => {
    const known = namesOf(await streamed("two-step", ["updates"]));
    expect(namesOf(await streamed("two-step", ["updates", "no-such-mode"]))).toEqual(known);
  });

  test.each(CLIENT_MODES)("%s, which a client of some version sends, is known", async (mode) => {
    expect(namesOf(await streamed("two-step", mode))).toContain("metadata");
  });

  test.each([
    ["/runs/stream", { stream_mode: "valeus" }],
    ["/runs/wait", { stream_mode: ["mesages", "update"] }],
    ["/runs", { stream_mode: ["foo"] }],
    ["/runs/crons", { stream_mode: "foo", schedule: "0 0 1 1 *" }],
  ])("with unknown names only is refused, since the stream would stay empty: %s %j", async (path, body) => {
    const answer = await api.post<{ detail: string }>(path, { assistant_id: "two-step", ...body });
    expect(answer.status).toBe(422);
    expect(answer.body.detail).toMatch(
      /^'stream_mode': must name at least one of 'values', 'updates', .+'\.$/,
    );
  });
});

const tokens = (count: number): string => Array.from({ length: count }, (_, index) => `t${index} `).join("");

describe("subgraphs", () => {
  test("are streamed only if requested", async () => {
    const events = await streamed("research", ["updates", "values", "custom"]);
    expect(namesOf(events).filter((name) => name.includes("|"))).toEqual([]);
    expect(dataOf(events, "updates").map((update) => Object.keys(update)[0])).toEqual([
      "plan",
      "investigate",
      "investigate",
      "investigate",
      "report",
    ]);
  });

  test("name their events mode|node:taskid", async () => {
    const events = await streamed("research", ["updates", "tasks", "messages-tuple"], {
      stream_subgraphs: true,
    });
    const inside = events.filter(({ event }) => event.startsWith("updates|"));
    expect(inside.map(({ data }) => Object.keys(data as object)[0]).sort()).toEqual([
      "read",
      "read",
      "read",
      "search",
      "search",
      "search",
    ]);
    for (const { event } of inside) expect(event).toMatch(/^updates\|investigate:[0-9a-f-]{36}$/);
    expect(new Set(inside.map(({ event }) => event)).size).toBe(3);
    expect(namesOf(events)).toContain("updates");
    expect(namesOf(events).some((name) => name.startsWith("tasks|investigate:"))).toBe(true);
  });
});

describe("no token is lost", () => {
  test("by three parallel runs with 200 tokens each", async () => {
    const runs = await Promise.all(
      Array.from({ length: 3 }, () =>
        streamed("tokens", ["messages-tuple", "values"], { input: { ...saying("go"), tokens: 200 } }),
      ),
    );
    for (const events of runs) {
      const chunks = dataOf<Tuple>(events, "messages").filter(([chunk]) => chunk.type === "ai");
      expect(chunks.map(([chunk]) => chunk.content).join("")).toBe(tokens(200));
      const final = dataOf<{ messages: Message[] }>(events, "values").at(-1);
      expect(final?.messages.at(-1)?.content).toBe(tokens(200));
    }
  });
});

describe("joining a stream with stream_mode", () => {
  const names = async (threadId: string, runId: string, query: string) => {
    const events = await readStream(`${server.url}/threads/${threadId}/runs/${runId}/stream?${query}`, {
      headers: { "last-event-id": "-1" },
    });
    return new Set(namesOf(events).map((name) => name.replace(/:[0-9a-f-]{36}/g, "")));
  };

  test("receives the requested modes, by the part before |, and metadata", async () => {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, {
      assistant_id: "research",
      input: saying("cats"),
      stream_mode: ["values", "updates", "tasks", "messages-tuple"],
      stream_subgraphs: true,
      stream_resumable: true,
    });
    await api.join(threadId, run.run_id);
    // LangGraph 1.7 names the graph of a message, earlier releases its node.
    let messages = "";
    for await (const [namespace] of await research.stream(saying("cats"), {
      streamMode: "messages",
      subgraphs: true,
    }))
      messages = ["messages", ...namespace].join("|").replace(/:[0-9a-f-]{36}/, "");
    const all = [
      "metadata",
      "values",
      "values|investigate",
      "updates",
      "updates|investigate",
      "tasks",
      "tasks|investigate",
      messages,
    ];
    const list = encodeURIComponent('["updates","values"]');
    expect(await names(threadId, run.run_id, "stream_mode=updates")).toEqual(
      new Set(["metadata", "updates", "updates|investigate"]),
    );
    expect(await names(threadId, run.run_id, "stream_mode=tasks&stream_mode=messages-tuple")).toEqual(
      new Set(["metadata", "tasks", "tasks|investigate", messages]),
    );
    expect(await names(threadId, run.run_id, `stream_mode=${list}`)).toEqual(
      new Set(["metadata", "updates", "updates|investigate", "values", "values|investigate"]),
    );
    for (const query of ["", "stream_mode="])
      expect(await names(threadId, run.run_id, query)).toEqual(new Set(all));
  });

  test("keeps the filter when it reconnects", async () => {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, {
      assistant_id: "two-step",
      input: saying("go"),
      stream_resumable: true,
    });
    await api.join(threadId, run.run_id);
    const path = `/threads/${threadId}/runs/${run.run_id}`;
    const stream = await openStream(`${server.url}${path}/stream?stream_mode=values&stream_mode=custom`);
    expect(stream.headers.get("location")).toBe(`${path}/stream?stream_mode=values&stream_mode=custom`);
    expect(stream.headers.get("content-location")).toBe(path);
    await stream.rest();
  });
});
