import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openThreadsRoom, type State, type Thread, type ThreadsRoom } from "./threads-room.ts";

let room: ThreadsRoom;
beforeAll(async () => {
  room = await openThreadsRoom();
});
afterAll(() => room.close());

interface Updated {
  checkpoint: {
    thread_id: string;
    checkpoint_ns: string;
    checkpoint_id: string;
    checkpoint_map: unknown;
  };
  configurable: Updated["checkpoint"];
  checkpoint_id: string;
  detail?: string;
}

const human = (content: string) => ({ messages: [{ role: "user", content }] });
const read = async <Body>(path: string) => (await room.request<Body>("GET", path)).body;
const stateOf = (id: string) => read<State>(`/threads/${id}/state`);
const historyOf = (id: string) => read<State[]>(`/threads/${id}/history?limit=1000`);
const update = (id: string, body: Record<string, unknown>) =>
  room.request<Updated>("POST", `/threads/${id}/state`, body);
const contents = (state: State) =>
  (state.values.messages as { content: string }[]).map(({ content }) => content);

const aRunThread = async (graphId: string, input: unknown): Promise<string> => {
  const { thread_id: id } = await room.aThread();
  await room.run(graphId, id, input);
  return id;
};

const setBusy = (id: string, runs: number) =>
  room.database.query("update threadloom.threads set unfinished_runs = $2 where thread_id = $1", [id, runs]);

describe("updating the state of a thread", () => {
  it("writes a checkpoint after the newest one, through the reducers, and returns its id", async () => {
    const id = await aRunThread("counter", human("one"));
    const before = await stateOf(id);
    const { status, body } = await update(id, { values: { count: 10 } });
    expect(status).toBe(200);
    const after = await stateOf(id);
    expect(after.values.count).toBe(11);
    expect(after.checkpoint).toEqual(body.checkpoint);
    expect(after.parent_checkpoint?.checkpoint_id).toBe(before.checkpoint?.checkpoint_id);
    expect(after.metadata).toMatchObject({ source: "update", thread_id: id });
    expect(body).toEqual({
      checkpoint: {
        thread_id: id,
        checkpoint_ns: "",
        checkpoint_id: body.checkpoint_id,
        checkpoint_map: null,
      },
      configurable: body.checkpoint,
      checkpoint_id: body.checkpoint_id,
    });
  });

  it("acts as the named node: its successors are next, and the thread is interrupted there", async () => {
    const id = await aRunThread("two-step", human("one"));
    await update(id, { values: human("as first"), as_node: "first" });
    expect((await stateOf(id)).next).toEqual(["second"]);
    expect(await read<Thread>(`/threads/${id}`)).toMatchObject({ status: "interrupted", interrupts: {} });
    await update(id, { values: null, as_node: "__end__" });
    expect((await stateOf(id)).next).toEqual([]);
    expect(await read<Thread>(`/threads/${id}`)).toMatchObject({ status: "idle" });
  });

  it("starts a thread that has a graph and no runs", async () => {
    const { thread_id: id } = await room.aThread({ metadata: { graph_id: "two-step" } });
    expect((await update(id, { values: human("hello"), as_node: "__start__" })).status).toBe(200);
    expect(await stateOf(id)).toMatchObject({ next: ["first"] });
    const { thread_id: other } = await room.aThread({ metadata: { graph_id: "two-step" } });
    expect((await update(other, { values: human("hello"), as_node: "__input__" })).status).toBe(200);
    expect(await stateOf(other)).toMatchObject({ metadata: { source: "input" } });
  });

  it("forks from a checkpoint named by its id or as a whole, and keeps later ones", async () => {
    const id = await aRunThread("counter", { ...human("one"), count: 5 });
    await room.run("counter", id, human("two"));
    const states = await historyOf(id);
    const first = states.find((state) => state.values.count === 6 && state.next.length === 0) as State;
    for (const place of [
      { checkpoint: first.checkpoint },
      { checkpoint: { ...first.checkpoint, thread_id: randomUUID() } },
      { checkpoint_id: first.checkpoint?.checkpoint_id, checkpoint: null },
    ]) {
      const { status } = await update(id, { ...place, values: human("other"), as_node: "increment" });
      expect(status).toBe(200);
      const head = await stateOf(id);
      expect(head.parent_checkpoint?.checkpoint_id).toBe(first.checkpoint?.checkpoint_id);
      expect([head.values.count, contents(head)]).toEqual([6, ["one", "other"]]);
    }
    expect(await historyOf(id)).toHaveLength(states.length + 3);
  });

  it("copies a checkpoint so that a run can start from it again", async () => {
    const id = await aRunThread("two-step", human("one"));
    const states = await historyOf(id);
    const middle = states.find((state) => state.next[0] === "second") as State;
    const { body } = await update(id, {
      values: null,
      as_node: "__copy__",
      checkpoint_id: middle.checkpoint?.checkpoint_id,
    });
    const head = await stateOf(id);
    expect(head.checkpoint?.checkpoint_id).toBe(body.checkpoint_id);
    expect([head.values, head.next, head.metadata.source]).toEqual([middle.values, ["second"], "fork"]);
  });

  it("accepts null for values", async () => {
    const id = await aRunThread("counter", human("one"));
    const before = await stateOf(id);
    for (const body of [{ values: null }, { values: null, as_node: "increment" }, {}]) {
      expect((await update(id, body)).status).toBe(200);
    }
    expect((await stateOf(id)).values).toEqual(before.values);
    expect(await historyOf(id)).toHaveLength(6);
  });

  it("shows an interrupt on the thread while it waits, and not after an update as its node", async () => {
    const id = await aRunThread("approval", human("refund"));
    const before = await stateOf(id);
    expect(before).toMatchObject({
      next: ["review"],
      interrupts: [{ value: { question: "Send this draft?" } }],
    });
    await update(id, { values: { status: "sent" }, as_node: "send" });
    expect(await read<Thread>(`/threads/${id}`)).toMatchObject({ status: "idle", interrupts: {} });
  });

  it("changes a subgraph in its namespace", async () => {
    const id = await aRunThread("nested-approval", { text: "a" });
    const place = (await stateOf(id)).tasks[0]?.checkpoint;
    const { status, body } = await update(id, {
      values: { text: "b" },
      checkpoint: place,
      as_node: "prepare",
    });
    expect(status).toBe(200);
    expect(body.checkpoint.checkpoint_ns).toBe(place?.checkpoint_ns);
    const deep = await read<State>(`/threads/${id}/state?subgraphs=true`);
    expect(deep.tasks[0]?.state).toMatchObject({ values: { text: "b" }, next: ["confirm"] });
  });
});

describe("a refused update stores nothing", () => {
  const refused = async (id: string, body: Record<string, unknown>) => {
    const before = await historyOf(id);
    const thread = await read<Thread>(`/threads/${id}`);
    const answer = await update(id, body);
    expect(await historyOf(id)).toEqual(before);
    expect(await read<Thread>(`/threads/${id}`)).toEqual(thread);
    return [answer.status, answer.body.detail];
  };

  it("while a run is pending or running", async () => {
    const id = await aRunThread("counter", human("one"));
    await setBusy(id, 1);
    expect(await refused(id, { values: { count: 1 } })).toEqual([
      409,
      `Thread '${id}' has a run in progress; wait for it or cancel it, then try again.`,
    ]);
  });

  it("if a run is created during the update", async () => {
    const id = await aRunThread("gated", { text: "a" });
    const holder = globalThis as Record<symbol, unknown>;
    const gate = Symbol.for("threadloom.test.gate");
    holder[gate] = async () => {
      await setBusy(id, 1);
    };
    const before = await historyOf(id);
    const { status, body } = await update(id, { values: { text: "b" }, as_node: "write" });
    delete holder[gate];
    await setBusy(id, 0);
    expect([status, body.detail]).toEqual([
      409,
      `Thread '${id}' has a run in progress; wait for it or cancel it, then try again.`,
    ]);
    expect(await historyOf(id)).toEqual(before);
    expect(await room.checkpoints.storage(id)).toMatchObject({ checkpoints: { count: before.length } });
  });

  it.each([
    [
      "a node that the graph doesn't have",
      { values: {}, as_node: "nobody" },
      'Node "nobody" does not exist.',
    ],
    ["values that are no update", { values: "text", as_node: "first" }, "object"],
    ["a message that is none", { values: { messages: [{ role: "martian" }] }, as_node: "first" }, "message"],
    ["a copy with a node", { values: [["a", "b", "c"]], as_node: "" }, "as_node"],
    ["a checkpoint that isn't one", { values: {}, checkpoint_id: "abc" }, "checkpoint_id"],
  ])("for %s", async (_, body, sentence) => {
    const id = await aRunThread("two-step", human("one"));
    expect(await refused(id, body)).toEqual([422, expect.stringContaining(sentence)]);
  });

  it("for a missing checkpoint", async () => {
    const id = await aRunThread("two-step", human("one"));
    const missing = randomUUID();
    const answer = [404, `Checkpoint '${missing}' not found.`];
    expect(await refused(id, { values: human("x"), checkpoint_id: missing })).toEqual(answer);
  });

  it("when a reducer or an edge of the graph throws; the answer has a fixed sentence without the error's text", async () => {
    const id = await aRunThread("throwing", { count: 1 });
    expect(await refused(id, { values: { count: "many" } })).toEqual([
      422,
      "The graph refuses this update: Only numbers can be counted.",
    ]);
    expect(await refused(id, { values: { count: 1000 }, as_node: "tick" })).toEqual([
      422,
      "The graph refuses this update: That is too much.",
    ]);
  });

  it("for a thread without a graph, or with an unknown one", async () => {
    const { thread_id: id } = await room.aThread();
    expect(await refused(id, { values: {} })).toEqual([422, expect.stringContaining("has no graph yet")]);
    const { thread_id: other } = await room.aThread({ metadata: { graph_id: "gone" } });
    expect(await refused(other, { values: {} })).toEqual([404, "Graph 'gone' not found."]);
  });
});

describe("creating a thread with supersteps", () => {
  it("writes one checkpoint for each, commands included", async () => {
    const thread = await room.aThread({
      metadata: { graph_id: "two-step" },
      supersteps: [
        { updates: [{ values: human("one"), as_node: "__start__" }] },
        { updates: [{ values: null, command: { update: human("two"), goto: [] }, as_node: "first" }] },
        { updates: [{ values: human("three"), as_node: "second" }] },
      ],
    });
    expect(thread.values).toMatchObject({
      messages: [{ content: "one" }, { content: "two" }, { content: "three" }],
    });
    expect(thread.status).toBe("idle");
    expect((await historyOf(thread.thread_id)).map(contents)).toEqual([
      ["one", "two", "three"],
      ["one", "two"],
      ["one"],
    ]);
  });

  it("leaves the thread interrupted if its supersteps end before the graph does", async () => {
    const thread = await room.aThread({
      metadata: { graph_id: "two-step" },
      supersteps: [{ updates: [{ values: human("one"), as_node: "__start__" }] }],
    });
    expect(thread.status).toBe("interrupted");
    expect((await stateOf(thread.thread_id)).next).toEqual(["first"]);
  });

  it.each([
    [422, "metadata.graph_id", { supersteps: [{ updates: [{ values: {}, as_node: "first" }] }] }],
    [
      404,
      "Graph 'gone' not found.",
      { metadata: { graph_id: "gone" }, supersteps: [{ updates: [{ as_node: "a" }] }] },
    ],
    [
      422,
      'Node "nobody" does not exist.',
      {
        metadata: { graph_id: "two-step" },
        supersteps: [
          { updates: [{ values: human("one"), as_node: "__start__" }] },
          { updates: [{ values: {}, as_node: "nobody" }] },
        ],
      },
    ],
  ])("answers %i with the sentence %s and leaves no thread", async (status, sentence, body) => {
    const id = randomUUID();
    const answer = await room.request<{ detail: string }>("POST", "/threads", { thread_id: id, ...body });
    expect([answer.status, answer.body.detail]).toEqual([status, expect.stringContaining(sentence)]);
    expect((await room.request("GET", `/threads/${id}`)).status).toBe(404);
    expect(await room.checkpoints.readHead(id)).toBeUndefined();
  });
});

describe("patching the metadata of a state", () => {
  it("merges them into the newest checkpoint's metadata", async () => {
    const id = await aRunThread("counter", human("one"));
    const before = await stateOf(id);
    const { status, body } = await room.request<Updated>("PATCH", `/threads/${id}/state`, {
      metadata: { mark: { $type: "undefined" } },
    });
    expect([status, body.checkpoint_id]).toEqual([200, before.checkpoint?.checkpoint_id]);
    expect(await stateOf(id)).toEqual({
      ...before,
      metadata: { ...before.metadata, mark: { $type: "undefined" } },
    });
  });

  it("is refused for keys that the storage needs", async () => {
    const id = await aRunThread("counter", human("one"));
    const answer = await room.request<Updated>("PATCH", `/threads/${id}/state`, {
      metadata: { $type: "date" },
    });
    expect([answer.status, answer.body.detail]).toEqual([422, "'metadata': the key '$type' is reserved."]);
  });

  it("is refused for a thread without runs", async () => {
    const { thread_id: id } = await room.aThread();
    const answer = await room.request<Updated>("PATCH", `/threads/${id}/state`, { metadata: {} });
    expect([answer.status, answer.body.detail]).toEqual([422, `Thread '${id}' has no state yet.`]);
  });
});
